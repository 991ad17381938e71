"""Seconds to switch a GPU from one job's task to another's (section 4 and Table 3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from copter_frontends.goodput import UnknownApplicationError
from copter_frontends.policies.hare.models import MODELS, HareModel
from copter_frontends.vocabulary import InvalidJobError

Scheme = Literal["default", "pipeswitch", "hare"]
SCHEMES: tuple[Scheme, ...] = ("default", "pipeswitch", "hare")

GPU_MEMORY_MB = {"v100": 16_000.0, "t4": 16_000.0, "k80": 12_000.0, "m60": 8_000.0}
"""Memory in megabytes of a GPU of each of the paper's types."""

# assumed memory of a running task, relative to its model's parameters (activations, gradients, state)
RUNNING_FACTOR = 8.0
KEPT_FACTOR = 2.0  # the same for a kept model: parameters and optimiser state


@dataclass(frozen=True, slots=True)
class SwitchCost:
    """Seconds of a switch to a model (HR33).

    Attributes
    ----------
    hit_s : float
        If the model is still in the GPU's memory (speculative memory management).
    miss_s : float
        If the model must be loaded.
    """

    hit_s: float
    miss_s: float


def switch_cost(model: str, scheme: Scheme) -> SwitchCost:
    """Return the cost of a switch to a model.

    Default and PipeSwitch clear all memory, so that hits and misses both cost Table 3's average. For Hare, a miss is
    cheaper by early task cleaning, assumed as half of Table 3's gain over PipeSwitch. The cost of a hit is such that
    one hit in two switches gives Table 3's average.

    Raises
    ------
    InvalidJobError
        If the model or the scheme is unknown.
    """
    known = model_of(model)
    if scheme == "default":
        return SwitchCost(1e-3 * known.default_ms, 1e-3 * known.default_ms)
    if scheme == "pipeswitch":
        return SwitchCost(1e-3 * known.pipeswitch_ms, 1e-3 * known.pipeswitch_ms)
    if scheme == "hare":
        miss = 0.5 * (known.pipeswitch_ms + known.hare_ms)
        return SwitchCost(1e-3 * (2.0 * known.hare_ms - miss), 1e-3 * miss)
    raise InvalidJobError(f"scheme is {scheme!r}, must be one of {', '.join(SCHEMES)}")


def model_of(name: str) -> HareModel:
    """Return the model of this name; raises UnknownApplicationError if there is none."""
    if name not in MODELS:
        raise UnknownApplicationError(f"no model is named {name!r}; there are {', '.join(MODELS)}")
    return MODELS[name]


def memory_mb(model: str) -> tuple[float, float]:
    """Return the megabytes of a running task and of a kept model."""
    size = model_of(model).parameters_mb
    return RUNNING_FACTOR * size, KEPT_FACTOR * size
