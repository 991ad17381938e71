"""Sia against its public simulator, workload by workload, with that simulator's semantics.

python benchmarks/tables/sia_reference.py [--only philly_1,saturn_3] [--keep FILE] [--own-shim] [--json]

Reads the reference results and the workloads in the data directory (COPTER_DATA). Average JCT, makespan and GPU hours
(of whole rounds) are to be within 10% on every workload and 5% on average.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from reference_table import ReferenceTable, main

TABLE = ReferenceTable("sia", {"het": "sia-het", "homog": "sia-hom"}, each=0.10, mean=0.05)

if __name__ == "__main__":
    sys.exit(main(TABLE, __doc__))
