"""Pollux against Sia's public simulator, with that simulator's semantics.

python benchmarks/tables/pollux_reference.py [--keep FILE] [--json]

Reads the reference results and the workload in the data directory (COPTER_DATA). Average JCT, makespan and GPU hours
(of whole rounds) are to be within 10%. The search is random in both, and so is what becomes of the few long jobs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from reference_table import ReferenceTable, main

TABLE = ReferenceTable("pollux", {"het": "sia-het"}, each=0.1, mean=0.1)

if __name__ == "__main__":
    sys.exit(main(TABLE, __doc__))
