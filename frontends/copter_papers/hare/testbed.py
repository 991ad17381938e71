"""Hare's testbed on the simulator: its 15 GPUs, and jobs of its eight models."""

from __future__ import annotations

from copter_frontends.simulator.workload import Workload
from copter_papers.hare.applications import as_jobs
from copter_papers.hare.workload import PaperWorkload

JOBS = 40  # jobs of the testbed's workload
ROUND_S = 60.0  # seconds between two plans; the median job takes four minutes if alone


def testbed_workload(jobs: int | None, seed: int) -> Workload:
    """Return the jobs of the paper's workload and their weights.

    Parameters
    ----------
    jobs : int, optional
        Number of jobs, by default :data:`JOBS`.
    seed : int
        The same seed gives the same jobs.
    """
    drawn = PaperWorkload(jobs if jobs is not None else JOBS).make(seed)
    source = f"Hare's testbed: {len(drawn):,} jobs of its eight models"
    weights = {job.id: job.weight for job in drawn}
    return Workload(as_jobs(drawn), source, [], sampled=False, weights=weights, round_s=ROUND_S)
