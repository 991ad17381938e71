"""Check the answers on a tape: ``python -m copter.verify FILE``. It imports nothing of copter but its own files.

Copied elsewhere the folder runs alone, with NumPy: ``python -m verify FILE``. ``program.py`` says what a tape holds and
what an edit does, ``judge.py`` what makes an answer true, ``bounds.py`` what prices prove: they are read in one
sitting. ``tree.py`` judges proofs of mixed-integer programs, ``vipr.py`` those in the format VIPR; ``command.py`` is
the command.
"""

from .bounds import attempts, proven
from .command import main
from .judge import multipliers, planned, point_faults, verify
from .program import Flat, Program, Unusable
from .tree import judge_proof, verify_proof
from .vipr import verify_vipr

__all__ = ["Flat", "Program", "Unusable", "judge_proof", "main", "multipliers", "planned", "point_faults", "proven"]
__all__ += ["attempts", "verify", "verify_proof", "verify_vipr"]
