"""Thesis 3.5.5 (Figure 3.7): finish-time fairness on Helios workloads, heterogeneous, paper and measured.

python benchmarks/tables/finish_time_fairness.py [--policies sia,gavel] [--workloads 2] [--keep FILE] [--json]

rho is JCT over the JCT of the same job alone on its fair part of the cluster, a mean over GPU types: of the ratios in
the thesis (3.6; B40), of the times in the public tool (B41). A job alone runs as the goodput model has it. The runs are
those of Table 3.3: with the same FILE none is done twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from policy_table import PaperTable, main

NOT_SAID = float("nan")

# (trace, policy): worst rho and unfair fraction by (3.6), then by the public tool, where the thesis has no figures.
PAPER = PaperTable(
    "Thesis 3.5.5: finish-time fairness",
    "sia-het",
    ("saturn",),
    ("ftf.thesis.worst", "ftf.thesis.unfair_fraction", "ftf.artifact.worst", "ftf.artifact.unfair_fraction"),
    {
        ("saturn", "sia"): (1.2, 0.003, NOT_SAID, NOT_SAID),
        ("saturn", "shockwave"): (3.3, 0.14, NOT_SAID, NOT_SAID),
        ("saturn", "pollux"): (4.6, 0.28, NOT_SAID, NOT_SAID),
        ("saturn", "gavel"): (27.8, 0.15, NOT_SAID, NOT_SAID),
    },
)

if __name__ == "__main__":
    sys.exit(main(PAPER, __doc__))
