"""The verifier in a process of its own: ``python -m copter_frontends.replay.judge_process TAPE``."""

from __future__ import annotations

import json
import sys

from copter import verify
from copter_frontends.replay.own_memory import limit_to_available


def main(path: str) -> int:
    """Print (round, what was checked, faults) a line as JSON; exit code 2: unusable tape, 3: not enough memory."""
    limit_to_available()
    try:
        for verdict in verify.verify(path):
            print(json.dumps(verdict))
    except verify.Unusable as error:
        print(error, file=sys.stderr)
        return 2
    except MemoryError:
        print("out of memory", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
