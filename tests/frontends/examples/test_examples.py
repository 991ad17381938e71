"""The examples run, and keep the protocol."""

import re
import runpy
from pathlib import Path

import pytest

from copter_frontends.placement import PlacementError, Placer
from copter_frontends.vocabulary import Allocation, Cluster, SchedulingPolicy

EXAMPLE = Path(__file__).parents[3] / "frontends" / "examples" / "shortest_first.py"


def test_shortest_first_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    line = r"(\d+) of 300 jobs done, average JCT ([\d.]+) h, utilisation (\d+)%, round p99 \d+ ms\n"
    printed = re.fullmatch(line, capsys.readouterr().out)
    assert printed is not None
    done, jct_h, utilisation = int(printed[1]), float(printed[2]), int(printed[3])
    assert 250 <= done <= 300  # of a day of 6 hours most jobs end
    assert 0.2 < jct_h < 1.0
    assert 60 < utilisation <= 100


def test_the_example_is_a_policy() -> None:
    policy = runpy.run_path(str(EXAMPLE))["ShortestFirst"](Cluster.of({"t4": (2, 4)}))
    assert isinstance(policy, SchedulingPolicy)


def test_a_job_that_pinned_jobs_leave_no_room_for_is_left_out() -> None:
    cluster = Cluster.of({"t4": (1, 4)})
    placer = Placer(cluster)
    previous = {"small": Allocation("t4", 1, (("t4-0", 1),))}
    wanted = {"small": ("t4", 1), "half": ("t4", 2)}
    allocations, moved, left_out = placer.place_what_fits(wanted, previous, ["small"])
    assert set(allocations) == {"small", "half"}
    assert not moved
    assert not left_out
    two = Placer(Cluster.of({"t4": (2, 4)}))
    pinned = {"a": Allocation("t4", 1, (("t4-0", 1),)), "b": Allocation("t4", 1, (("t4-1", 1),))}
    both = {"a": ("t4", 1), "b": ("t4", 1), "whole": ("t4", 4)}
    with pytest.raises(PlacementError, match="'whole'"):
        two.place(both, pinned, ["a", "b"])
    allocations, _, left_out = two.place_what_fits(both, pinned, ["a", "b"])
    assert left_out == ("whole",)
    assert allocations == pinned


def test_hadar_at_scale_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(EXAMPLE.with_name("hadar_at_scale.py")))
    found = example["run"](700, 3, 0, "throughput", False, 1)
    assert found["gpus"] == 700
    assert found["used"] > 0.9
    assert found["gap"]["max"] < 0.05
    assert found["fractional_jobs_max"] <= 7
