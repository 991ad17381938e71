"""Published traffic-engineering instances by name; families.traffic regenerates them (the folder `te` of the data)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Network:
    """An instance: a topology, and a demand matrix by model, scale and seed.

    Attributes
    ----------
    share : float
        Of the ordered pairs, drawn at random, that are kept.
    capacity : float or None
        Of every arc; None for the topology's own.
    """

    topology: str
    model: str
    scale: float
    seed: int
    share: float = 1.0
    capacity: float | None = None


NETWORKS: dict[str, Network] = {
    "GtsCe": Network("GtsCe", "gravity", 64, 1321948195),
    "UsCarrier": Network("UsCarrier", "uniform", 64, 262493073),
    "Cogentco": Network("Cogentco", "gravity", 64, 1229219359),
    "Kdl-tenth": Network("Kdl", "gravity", 16, 1710674203, 0.1, 100.0),
    "Kdl": Network("Kdl", "gravity", 16, 1710674203),
}
