"""Estimated starts of the jobs that a shadow sees waiting, and the nodes that its plan takes first."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from kube_cluster import two_teams, workload

from copter_serve.shadow.page import shadow_page
from copter_serve.shadow.watch import Shadow
from copter_serve.views import ClusterView
from copter_serve.views.board import Board
from copter_serve.views.kueue import kueue_view
from copter_serve.views.slurm_jobs import limit_of
from copter_serve.views.starts import Node, Pods, Way

NOW_S = datetime.fromisoformat("2026-11-24T11:00:00+00:00").timestamp() + 1000.0  # r/big runs for 1,000 s


def documents(**limits: int) -> list[dict[str, Any]]:
    """Two teams, and another job of 8 GPUs; each job's time limit."""
    found = [*two_teams(), workload("b/last", 8)]
    for each in found:
        name = str(each["metadata"]["name"])
        if each["kind"] == "Workload" and name in limits:
            each["spec"]["maximumExecutionTimeSeconds"] = limits[name]
    return found


def looked(view: ClusterView) -> tuple[dict[str, float | None], str]:
    with Shadow(lambda: view, clock=lambda: NOW_S) as shadow:
        shadow.look()
    assert shadow.findings is not None
    json.dumps(shadow.summary(), allow_nan=False)
    return {each["job"]: each["starts_in_s"] for each in shadow.findings.estimates}, shadow_page(shadow)


def test_the_plans_jobs_start_now_and_the_others_when_time_limits_end() -> None:
    starts, page = looked(kueue_view(documents(big=3600, own=1000, small=7200, last=60)))
    # 16 GPUs: big gives 12 back after 2,600 s; small keeps 2; own is of a higher priority than last
    assert starts == {"b/small": 0.0, "b/own": 2600.0, "b/last": 3600.0}
    assert "in 43 min" in page
    assert "time limits" in page


def test_without_time_limits_no_start_is_known() -> None:
    starts, page = looked(kueue_view(documents()))
    assert starts == {"b/small": 0.0, "b/own": None, "b/last": None}
    assert "not known" in page


def test_a_job_starts_first_in_a_hole_that_no_reservation_uses() -> None:
    view = kueue_view(documents(big=3600, own=1000, small=7200, last=60))
    held = [job for job in view.jobs if job.id == "b/small"]
    view.jobs = [job for job in view.jobs if job not in held]
    starts, _ = looked(view)
    assert starts == {"b/own": 2600.0, "b/last": 2600.0}  # 16 GPUs are both


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ({"number": 43200, "set": True, "infinite": False}, 2_592_000.0),  # 30 days
        (10, 600.0),
        ({"number": 0, "set": True, "infinite": True}, float("inf")),
        ({"number": 0, "set": False, "infinite": False}, float("inf")),
        (4294967295, float("inf")),
        (None, float("inf")),
    ],
)
def test_a_slurm_jobs_time_limit(told: object, seconds: float) -> None:
    assert limit_of({"time_limit": told}) == seconds


def test_the_plan_takes_the_node_with_the_least_left_that_still_holds_the_job() -> None:
    nodes = [Node(name, {"gpu": 8.0}, {"gpu": free}) for name, free in (("a", 8.0), ("b", 3.0), ("c", 5.0))]
    board = Board(nodes)

    def place(gpus: float) -> tuple[tuple[str, ...], ...] | None:
        return board.place(Way("q", {}, (Pods(1, {"gpu": gpus}),)))

    assert [place(gpus) for gpus in (2.0, 4.0, 1.0, 8.0)] == [(("b",),), (("c",),), (("b",),), (("a",),)]


def test_a_file_without_a_number_is_told() -> None:
    found = documents()
    next(each for each in found if each["kind"] == "Workload")["spec"]["maximumExecutionTimeSeconds"] = "soon"
    assert any("maximumExecutionTimeSeconds" in line for line in kueue_view(found).skipped)
