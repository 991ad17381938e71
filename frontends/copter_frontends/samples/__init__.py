"""A workload, a network and a linear program that come with copter: ``--trace sample`` needs no data of one's own."""

from __future__ import annotations

from pathlib import Path

WORD = "sample"
"""What a command line says for the shipped file."""

WORKLOAD = Path(__file__).parent / "workload.csv"
"""140 jobs over five hours, from the embedded generator (benchmarks/make_samples.py)."""

NETWORK = Path(__file__).parent / "backbone.csv"
"""24 nodes, from the generator of random networks."""

PROGRAM = Path(__file__).parent / "program.mps"
"""A small allocation problem: 40 jobs on three GPU types."""


def given_or_sample(given: str, shipped: Path) -> str:
    """The shipped file for the word "sample", unless a file of that name is there; anything else as it is."""
    return str(shipped) if given == WORD and not Path(given).exists() else given
