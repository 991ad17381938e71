"""Speed that the artifact's models lose if they run on more nodes than they need."""

from __future__ import annotations

from collections.abc import Mapping

SPREAD_COST: Mapping[str, float] = {
    "alexnet": 0.49,
    "vgg16": 0.43,
    "resnet101": 0.05,
    "mobilenet_v2": 0.07,
    "inception_v3": 0.08,
}
"""Share of the speed that a job on 8 GPUs loses on 2 nodes, from the artifact's model_info.json (MIT licence)."""
