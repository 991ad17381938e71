"""Conversion of a job's duration to work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from copter_frontends.goodput import APPLICATIONS, GoodputModel
from copter_frontends.simulator.traces.classes import MOST_GPUS
from copter_frontends.vocabulary import Configuration

REFERENCE_TYPE = "v100"  # GPU type to which a trace's durations are assumed to refer
REFERENCE_GPUS_PER_NODE = 8  # GPUs on each node of that type


def work_of_durations(
    applications: Sequence[str], gpus: Iterable[int], durations_s: Iterable[float]
) -> list[float | None]:
    """Return the work, in samples, that takes each job its duration on its requested GPUs of the reference type.

    Slowdown is included and restarts are not; requests above :data:`MOST_GPUS` count as that many.
    """
    sizes = [min(int(count), MOST_GPUS) for count in gpus]
    places = {k: Configuration(-(-k // REFERENCE_GPUS_PER_NODE), k, REFERENCE_TYPE) for k in set(sizes)}
    model = GoodputModel(list(places.values()))
    rates: dict[tuple[str, int], float] = {}
    works: list[float | None] = []
    for application, size, duration_s in zip(applications, sizes, durations_s, strict=True):
        key = application, size
        if key not in rates:
            rates[key] = APPLICATIONS[application].work_samples / model.training_time_s(application, places[size])
        works.append(rates[key] * float(duration_s))
    return works
