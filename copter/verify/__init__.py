"""Check the answers on a tape: ``python -m copter.verify FILE``. It imports nothing of copter but its own files.

A copy of the folder runs alone, with NumPy: ``python -m verify FILE``. ``program.py`` says what a tape holds and what
an edit does, ``judge.py`` when an answer is true; ``tree.py`` judges proofs of mixed-integer programs, ``vipr.py``
proofs in the format VIPR. Each file is short enough to be read as a whole.
"""

from .judge import NONE, main, multipliers, plan_faults, proven, verify
from .program import Flat, Program, Unusable
from .tree import judge_proof, verify_proof
from .vipr import verify_vipr

__all__ = [
    "NONE",
    "Flat",
    "Program",
    "Unusable",
    "judge_proof",
    "main",
    "multipliers",
    "plan_faults",
    "proven",
    "verify",
    "verify_proof",
    "verify_vipr",
]
