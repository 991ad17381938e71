"""The verifier in a process of its own: ``python -m copter_frontends.replay.judge_process TAPE``."""

from __future__ import annotations

import json
import sys

from copter import verify


def main(path: str) -> int:
    """Print (round, what was checked, faults) a line as JSON; exit code 2 for an unusable tape."""
    try:
        for verdict in verify.verify(path):
            print(json.dumps(verdict))
    except verify.Unusable as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
