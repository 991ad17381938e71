"""Thesis Table 3.3: the heterogeneous cluster of 64 GPUs (6 T4, 3 RTX, 2 A100 nodes), paper and measured.

python benchmarks/tables/table_3_3.py [--policies sia] [--traces philly,saturn,newtrace] [--workloads 2] [--keep FILE]

Every policy that the registry knows can be named. The semantics are the public simulator's; the paper's figures are
means over ten workloads a trace, of which the data has five (newTrace: three).
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from policy_table import PaperTable, main

# (trace, policy): average JCT h, p99 JCT h, makespan h, GPU hours a job, contention, restarts a job.
PAPER = PaperTable(
    "Thesis Table 3.3: heterogeneous, 64 GPUs",
    "sia-het",
    ("philly", "saturn", "newtrace"),
    ("avg_jct_h", "p99_jct_h", "makespan_h", "gpu_hours_per_job", "contention", "restarts_per_job"),
    {
        ("philly", "sia"): (0.6, 9.5, 14.2, 4.0, 6.9, 2.9),
        ("philly", "pollux"): (1.0, 14.9, 24.5, 5.6, 7.2, 5.8),
        ("philly", "gavel"): (1.9, 30.0, 33.8, 9.0, 9.9, 5.7),
        ("saturn", "sia"): (0.7, 10.9, 14.9, 4.8, 7.4, 3.4),
        ("saturn", "pollux"): (1.0, 15.0, 25.5, 5.9, 6.9, 5.3),
        ("saturn", "gavel"): (2.5, 38.7, 43.0, 12.1, 9.2, 7.5),
        ("newtrace", "sia"): (0.7, 4.6, 52.2, 3.0, 13.0, 5.0),
        ("newtrace", "pollux"): (1.5, 10.3, 62.3, 3.4, 22.0, 5.4),
        ("newtrace", "gavel"): (11.3, 98.1, 110.0, 6.4, 96.0, 4.5),
    },
)

if __name__ == "__main__":
    sys.exit(main(PAPER, __doc__))
