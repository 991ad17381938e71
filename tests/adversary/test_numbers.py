"""Numbers that overflow or lose a part are refused where they are given, by the name of what they were given for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from copter import InvalidDataError, Model, Session
from copter_frontends.simulator.event_file import read_events
from copter_frontends.vocabulary import Cluster, InvalidClusterError
from copter_frontends.vocabulary.named_clusters import read_cluster
from tests.copter.plain import innards


def model() -> Model:
    """Two requests of one template."""
    made = Model()
    made.add_resources("g", 4)
    template = made.add_template({"g": [1, 2]})
    made.add_requests(["p", "q"], [[1.0, 2.0], [1e200, 2.0]], template=template)
    return made


WRONG: dict[str, Callable[[Model], Any]] = {
    "added": lambda m: m.add_request("r", [1e200, 1.0], {"g": [1, 1]}, scale=1e200),
    "added among many": lambda m: m.add_requests(
        ["o", "r"], [[1.0, 1.0], [1e200, 1.0]], template=m.templates[0], scale=[1.0, 1e200]
    ),
    "offset on top": lambda m: m.add_request("r", [1.7e299], {"g": [1]}, scale=1e9, offset=1e308),
    "beyond 1e300": lambda m: m.add_request("r", [1e301], {"g": [1]}),
    "replaced": lambda m: m.update_cost("r", [1e200, 1.0], scale=-1e200),
    "replaced in a table": lambda m: m.update_costs(["q", "r"], np.array([[1.0, 1.0], [1e301, 1.0]])),
    "rescaled": lambda m: m.rescale_cost("r", 1e200),
    "many rescaled": lambda m: m.rescale_costs(["p", "r"], [1.0, 1e200]),
    "complex scale": lambda m: m.rescale_cost("r", np.complex128(1 + 1j)),
    "scale in words": lambda m: m.rescale_cost("r", "4_0"),
    "masked table": lambda m: m.update_costs(["r"], np.ma.array([[1.0, 2.0]], mask=[[True, False]])),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_overflows_is_refused_at_the_edit_and_named(name: str) -> None:
    """And the model solves on as it was."""
    made = model()
    if "add" not in name and name not in ("offset on top", "beyond 1e300"):
        made.add_request("r", [1e200, 1.0], {"g": [1, 1]})
    before = innards(made)
    with pytest.raises(InvalidDataError, match=r"'r'|r: |costs"):
        WRONG[name](made)
    assert innards(made) == before


def test_large_scales_of_small_costs_are_fine() -> None:
    made = Model()
    made.add_resources("g", 1)
    made.add_request("r", [1e-200, 2e-200], {"g": [1, 1]}, scale=1e200)
    assert Session(made).solve().objective == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("types: [{name: v100, gpus_per_node: 4, nodes: 99999999999999999999}]", "nodes: must be at most 1,000,000"),
        ("types: [{name: v100, gpus_per_node: 4000000, nodes: 1}]", "gpus_per_node: must be at most 1,000,000"),
        ("events: [{time_s: 1, what: add, gpu_type: t4, count: 99999999999}]", "count: must be at most 1,000,000"),
        (f"events: [{{time_s: 1{'0' * 400}, what: add, gpu_type: t4, count: 1}}]", "time_s: must be a number"),
        (
            "random_failures: {hours: 1.0e+20, mean_hours_between: 5, mean_repair_hours: 2}",
            "about 1.7e+20 failures",
        ),
        (f"random_failures: {{hours: 1{'0' * 400}, mean_hours_between: 5, mean_repair_hours: 2}}", "must be a number"),
    ],
)
def test_a_number_in_a_small_file_does_not_take_all_memory(tmp_path: Path, text: str, said: str) -> None:
    """Found by the fuzzer, which the kernel ended at 24 GB."""
    path = tmp_path / "f.yaml"
    path.write_text(text)
    with pytest.raises(InvalidClusterError, match=re.escape(said)):
        read_cluster(path) if text.startswith("types") else read_events(path, Cluster.of({"t4": (12, 4)}))
