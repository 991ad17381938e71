"""Thesis Table 3.4: the homogeneous cluster of 64 GPUs (16 T4 nodes), paper and measured.

python benchmarks/tables/table_3_4.py [--policies sia] [--workloads 2] [--no-tuned] [--keep FILE] [--json]

Every policy that the registry knows can be named. The semantics are the public simulator's. Inelastic policies have
jobs that are tuned for this cluster, to 64 GPUs (baselines.md, B38); with --no-tuned those of the workload files,
which are tuned to 16 GPUs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from policy_table import PaperTable, main

# (trace, policy): average JCT h, p99 JCT h, makespan h, GPU hours a job.
PAPER = PaperTable(
    "Thesis Table 3.4: homogeneous, 64 GPUs",
    "sia-hom",
    ("philly",),
    ("avg_jct_h", "p99_jct_h", "makespan_h", "gpu_hours_per_job"),
    {
        ("philly", "sia"): (1.9, 18.1, 21.4, 8.4),
        ("philly", "pollux"): (2.0, 19.3, 21.7, 8.6),
        ("philly", "shockwave"): (3.6, 32.8, 35.0, 12.5),
        ("philly", "themis"): (5.4, 44.7, 49.7, 17.2),
        ("philly", "gavel"): (4.3, 37.1, 44.3, 15.3),
    },
    tuned_gpus=64,
)

if __name__ == "__main__":
    sys.exit(main(PAPER, __doc__))
