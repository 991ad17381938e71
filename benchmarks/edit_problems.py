"""The models that edits are measured on: 13.5 million columns, of one template or each request with its own usage."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter import Model
from copter.model.matrix import Template

Floats = NDArray[np.float64]

COLUMNS = 3000  # of a request
REQUESTS = 4500  # 13.5 million columns
TYPES = 7
UNITS = 40_000  # of each resource


def runs_usage(rng: np.random.Generator, n: int = COLUMNS) -> dict[str, Floats]:
    """Every column uses one type, the columns of a type next to each other: one entry a column."""
    kind = np.sort(rng.integers(0, TYPES, n))
    units = rng.integers(1, 64, n).astype(float)
    return {f"type-{k}": np.where(kind == k, units, 0.0) for k in range(TYPES)}


def spread_usage(rng: np.random.Generator, n: int, entries: int) -> dict[str, Floats]:
    """Every column uses so many types, drawn at random."""
    place = np.argsort(rng.random((TYPES, n)), axis=0)
    units = rng.integers(1, 64, (TYPES, n)).astype(float)
    return {f"type-{k}": np.where(place[k] < entries, units[k], 0.0) for k in range(TYPES)}


def large(kind: str) -> Model:
    """13.5 million columns: "templated", "templated-float32", or "generic" (every request with its own pattern)."""
    rng = np.random.default_rng(0)
    model = Model(cost_dtype="float32" if kind.endswith("float32") else "float64")
    for k in range(TYPES):
        model.add_resource(f"type-{k}", UNITS)
    template = None if kind == "generic" else model.add_template(runs_usage(rng))
    for request in range(REQUESTS):
        source: dict[str, Any] = {"template": template} if template is not None else {"usage": runs_usage(rng)}
        model.add_request(request, rng.random(COLUMNS), **source)
    return model


def one_template(model: Model) -> Template:
    """The template that the requests of a large model share."""
    return model.templates[0]


def resident_mib() -> float:
    """Memory of this process now, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
