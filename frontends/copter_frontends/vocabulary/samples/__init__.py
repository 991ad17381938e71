"""Sample data installed with copter: a workload, a network and a linear program (``--trace sample``)."""

from __future__ import annotations

from pathlib import Path

WORD = "sample"
"""The word that means the installed file on a command line."""

WORKLOAD = Path(__file__).parent / "workload.csv"
"""140 jobs over five hours, from the embedded generator (benchmarks/make_samples.py)."""

NETWORK = Path(__file__).parent / "backbone.csv"
"""24 nodes, from the generator of random networks."""

PROGRAM = Path(__file__).parent / "program.mps"
"""A small allocation problem: 40 jobs on three GPU types."""


def given_or_sample(given: str, shipped: Path) -> str:
    """Return the installed file for the word "sample", unless such a file exists here; other values unchanged."""
    return str(shipped) if given == WORD and not Path(given).exists() else given
