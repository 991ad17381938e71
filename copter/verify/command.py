"""The command: it judges tapes and proofs, one after the other, and prints what it found."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from .judge import verify
from .program import Path, Unusable
from .tree import is_proof, is_rejected


def main(paths: Sequence[Path], heard: Callable[[Path, int], object] = lambda path, rounds: None) -> int:
    """Verify tapes and proofs; exit code 0 if all is accepted, 1 if a round is rejected, 2 for an unusable file.

    `heard` is called with a file and the rounds judged so far, before the first and after each.
    """
    wrong, unusable = 0, False
    for path in paths:
        counts = Counter(rounds=0, accepted=0, rejected=0)
        heard(path, 0)
        try:
            if not os.path.isfile(path) and os.path.exists(path):
                raise Unusable("it is no ordinary file, and may have no end")
            if is_proof(path):
                wrong += is_rejected(path)
                continue
            for number, checked, faults in verify(path):
                if checked and checked[0].startswith("cut short"):
                    print(f"{path}: {checked[0]}: the rounds before it are judged", file=sys.stderr)
                    continue
                counts.update(("rounds", "rejected" if faults else "accepted" if checked else "unanswered", *checked))
                heard(path, counts["rounds"])
                for fault in faults:
                    print(f"{path}: round {number} is rejected: {fault}")
        except (Unusable, OSError, MemoryError) as error:
            told = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)
            print(f"{path}: {told or 'there is not enough memory'}", file=sys.stderr)
            unusable = True
            continue
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count or what in ("rounds", "rejected"))
        print(f"{path}: {told}")
        wrong += counts["rejected"]
    return 2 if unusable else 1 if wrong else 0
