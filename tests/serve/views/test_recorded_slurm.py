"""Slurm's view and the starts that it names, on documents of a real Slurm, beside what Slurm then did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from copter_serve.shadow.findings import Findings, find
from copter_serve.shadow.start_model import StartModel
from copter_serve.views.slurm import slurm_view
from copter_serve.views.slurm_text import expanded
from copter_serve.views.view import ClusterView

RECORDED = Path(__file__).resolve().parents[2] / "slurm" / "recorded"
SITUATIONS = sorted(path.parent for path in RECORDED.glob("*/*/started.json"))
# Room is there, and Slurm keeps it, or it looks no further than at a job before this one; the view says so.
BY_ORDER = ("Priority",)
LIMITS = "states and limits of partitions, which a list of nodes does not have"
SHARED = "CPUs that jobs share (OverSubscribe)"


def viewed(folder: Path, when: str, source: str) -> ClusterView:
    """The view of the recorded documents."""
    return slurm_view(str(folder / f"{when}_squeue.json"), str(folder / f"{when}_{source}.json"))


def found(view: ClusterView) -> Findings:
    """What could start."""
    return find(view, StartModel(view.tree), 0.0)


@pytest.mark.parametrize("source", ["sinfo", "nodes"])
@pytest.mark.parametrize("folder", SITUATIONS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_slurm_starts_could_start_and_what_it_leaves_could_not(folder: Path, source: str) -> None:
    if not (folder / f"before_{source}.json").exists():
        pytest.skip("this release prints nodes for both")
    slurm: dict[str, Any] = json.loads((folder / "started.json").read_text())
    before = viewed(folder, "before", source)
    assert not before.skipped
    assert before.not_modelled  # what Slurm prints does not tell all, so that nothing is called certified
    now = found(before)
    assert not now.certified
    blocked = {job for job, why in slurm["waiting"].items() if why not in ("Resources", *BY_ORDER)}
    if LIMITS in before.not_modelled:
        blocked = {job for job in blocked if not slurm["waiting"][job].startswith("Partition")}
    assert not {start["job"] for start in now.starts} & blocked
    heterogeneous = {job.split("+")[0] for job in slurm["started"] if "+" in job}
    waiting = {job.id: job for job in before.jobs if not job.running}
    for job, nodes in slurm["started"].items():
        if "+" in job or job.split("_")[0] in heterogeneous:
            continue  # its parts have numbers of their own in the view
        mine = waiting[job]
        if mine.held == "ReqNodeNotAvail":
            continue  # Slurm's own word at that time
        assert not mine.held, f"{job} is held ({mine.held}), and Slurm started it on {nodes}"
        everyone, before.jobs = before.jobs, [each for each in before.jobs if each.running or each is mine]
        alone = found(before)
        before.jobs = everyone
        assert mine.unclear or SHARED in before.not_modelled or [start["job"] for start in alone.starts] == [job]
        if alone.starts:
            assert len(alone.starts[0]["nodes"]) <= len(expanded(nodes))
    for start in found(viewed(folder, "after", "sinfo")).starts:
        assert slurm["waiting"][start["job"].split("_")[0]] in BY_ORDER
