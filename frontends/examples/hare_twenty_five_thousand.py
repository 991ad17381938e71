"""Hare on 25,000 GPUs and 5,000 jobs: the example of 10,000 at the larger size.

python frontends/examples/hare_twenty_five_thousand.py
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run :mod:`hare_ten_thousand` with 25,000 GPUs, unless another number is given."""
    if "--gpus" not in sys.argv:
        sys.argv += ["--gpus", "25000"]
    runpy.run_path(str(Path(__file__).with_name("hare_ten_thousand.py")), run_name="__main__")


if __name__ == "__main__":
    main()
