"""Measured steps and gradient statistics of applications, read in place from profile files (docs/method/goodput.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.applications import APPLICATIONS, HYBRID_APPLICATIONS, Application
from copter_frontends.goodput.fitted_constants import EPOCHS
from copter_frontends.goodput.profile_files import Column, read_columns
from copter_frontends.goodput.profiled import ProfiledApplication, ProfiledSteps, fitted_profiles
from copter_frontends.goodput.refitting import Observation

Floats = NDArray[np.float64]

SUFFIXES: Mapping[str, str] = {"t4": "aws", "rtx": "rtx", "a100": "dgx-ext", "quad": "quad", "v100": "azure"}
"""Suffix of the profile files' names by GPU type."""

LOCAL_LIMIT = {("deepspeech2", "rtx"): 57}
"""Largest local batch in the public simulator, by (application, GPU type), if it differs from the largest profiled
one.
"""

MOST_NODES = 16  # steps on more nodes are assumed equal to those on this many


class MeasuredSteps:
    """Step and synchronisation times of one application on one GPU type, interpolated as the public simulator does.

    Parameters
    ----------
    placements, scalability : mapping of str to array
        Checked columns of the two profile files; ``placement`` is text with one digit per node.
    local_limit : int, optional
        Largest local batch, if it is below the largest profiled one.
    """

    def __init__(
        self, placements: Mapping[str, Column], scalability: Mapping[str, Column], local_limit: int | None = None
    ) -> None:
        self._by_placement: dict[str, tuple[Floats, Floats]] = {}
        local, steps = (
            numbers(placements, "local_bsz"),
            np.column_stack([numbers(placements, "step_time"), numbers(placements, "sync_time")]),
        )
        names = np.asarray(placements["placement"], dtype=np.str_)
        for name in dict.fromkeys(names.tolist()):
            rows = np.flatnonzero(names == name)
            rows = rows[np.argsort(local[rows], kind="stable")]
            self._by_placement[name] = local[rows], steps[rows]
        self.min_local = int(local.min())
        self.max_local = int(min(local.max(), local_limit or np.inf))
        gpus = np.array([sum(map(int, name)) for name in names.tolist()])
        nodes = np.array([len(name) for name in names.tolist()])
        self._most_by_gpus = {int(k): int(local[gpus == k].max()) for k in np.unique(gpus)}
        self._scalability = np.column_stack(
            [numbers(scalability, c) for c in ("num_nodes", "num_replicas", "local_bsz")]
        )
        scaled = np.column_stack([numbers(scalability, c) for c in ("step_time", "sync_time")])
        self._points = np.vstack([np.column_stack([nodes, gpus, local]), self._scalability])
        self._values = np.vstack([steps, scaled])
        self._space: tuple[Any, Any] | None = None
        self._known: dict[tuple[str, int], tuple[float, float]] = {}
        one = self._by_placement["1"]
        self.one_gpu = (int(one[0].max()), float(one[1][:, 0].max()))

    def __getstate__(self) -> dict[str, Any]:
        """Return all fields but the triangulation, which is rebuilt on first use."""
        return {**self.__dict__, "_space": None}

    @property
    def one_gpu_rate(self) -> float:
        """Return samples per second of the largest local batch on one GPU: xput(1) of equation (3.1)."""
        return self.one_gpu[0] / self.one_gpu[1]

    def observations(self, nodes: int, gpus: int) -> list[Observation]:
        """Return profiled points up to these numbers of nodes and GPUs: (nodes, GPUs, local batch, step_s, sync_s)."""
        fit = (self._points[:, 0] <= nodes) & (self._points[:, 1] <= gpus)
        return [
            (int(n), int(k), int(m), float(step), float(sync))
            for (n, k, m), (step, sync) in zip(self._points[fit], self._values[fit], strict=True)
        ]

    def most_local(self, placement: Sequence[int]) -> int:
        """Return the largest local batch measured in a placement (GPUs on each node)."""
        name = placement_name(placement)
        if name in self._by_placement:
            return int(self._by_placement[name][0].max())
        wide = (self._scalability[:, 0] >= len(placement)) & (self._scalability[:, 1] >= sum(placement))
        return int(self._scalability[wide, 2].max()) if wide.any() else self.max_local

    def most_local_of(self, gpus: int) -> int | None:
        """Return the largest local batch measured on this number of GPUs in any placement; None if there is none."""
        return self._most_by_gpus.get(gpus)

    def step(self, placement: Sequence[int], local: int) -> tuple[float, float]:
        """Return the seconds of a whole step and of its exposed synchronisation.

        Raises
        ------
        InvalidDataError
            If the placement or the local batch was not profiled.
        """
        name = placement_name(placement)
        key = (name, local)
        if key not in self._known:
            self._known[key] = self._interpolate(name, placement, local)
        return self._known[key]

    def _interpolate(self, name: str, placement: Sequence[int], local: int) -> tuple[float, float]:
        if name in self._by_placement:
            x, y = self._by_placement[name]
            if x[0] <= local <= x[-1]:
                return float(np.interp(local, x, y[:, 0])), float(np.interp(local, x, y[:, 1]))
        step, sync = self._in_space(min(len(placement), MOST_NODES), sum(placement), local)
        if not step > 0:
            raise InvalidDataError(
                f"{sum(placement)} GPUs on {len(placement)} nodes at local batch {local}: not profiled"
            )
        return step, sync

    def _in_space(self, nodes: int, gpus: int, local: int) -> tuple[float, float]:
        """Return step and synchronisation seconds, interpolated linearly between measured (nodes, GPUs, local batch).

        Outside the convex hull of the measurements the nearest one counts. A type that was measured on one node only
        says nothing of several.
        """
        if nodes > 1 and self._points[:, 0].max() == 1:
            raise InvalidDataError(f"{gpus} GPUs on {nodes} nodes: this GPU type was measured on one node only")
        if self._space is None:
            points, where = np.unique(self._points, axis=0, return_inverse=True)
            count = np.bincount(where.ravel())
            mean = np.column_stack([np.bincount(where.ravel(), self._values[:, k]) / count for k in (0, 1)])
            first = int(np.ptp(points[:, 0]) == 0)  # one number of nodes is no axis of the interpolation
            known = points[:, first:], mean
            self._space = LinearNDInterpolator(*known), NearestNDInterpolator(*known, rescale=True)
        inside, outside = self._space
        asked = [nodes, gpus, local][-inside.points.shape[1] :]
        result = inside(asked)[0]
        if np.isnan(result).any():
            result = outside(asked)[0]
        return float(result[0]), float(result[1])


def read_profiles(directory: str | Path, names: Sequence[str] = tuple(EPOCHS)) -> dict[str, ProfiledApplication]:
    """Read measured profiles of applications, one folder each, in the Sia artifact's format.

    Hybrid-parallel applications, for which the artifact has no files, get profiles from their constants.

    Raises
    ------
    InvalidDataError
        If a folder or file is missing or invalid; the message names it.
    """
    root = Path(directory)
    return {**fitted_profiles(HYBRID_APPLICATIONS), **{name: _read_application(root / name, name) for name in names}}


def profiles_of(directory: str | Path, applications: Mapping[str, Application]) -> dict[str, ProfiledApplication]:
    """Return the profiles of applications: measured where the directory has them, otherwise from fitted constants.

    Errors as of :func:`read_profiles`.
    """
    measured = read_profiles(directory)
    others = {name: made for name, made in applications.items() if name not in measured}
    return {**fitted_profiles(others), **measured}


def find_profiles(*next_to: str | Path | None) -> Path | None:
    """Return the folder ``profiles/sia`` in the data directory or beside a parent of one of the given files; None if
    absent.

    The data directory is the environment's ``COPTER_DATA``, by default ``../shared/data``.
    """
    roots = [Path(os.environ.get("COPTER_DATA", "../shared/data"))]
    roots += [folder for path in next_to if path for folder in Path(path).resolve().parents]
    return next((root / "profiles" / "sia" for root in roots if (root / "profiles" / "sia" / "cifar10").is_dir()), None)


def _read_application(folder: Path, name: str) -> ProfiledApplication:
    if not folder.is_dir():
        raise InvalidDataError(f"{folder}: no such folder of profiles; give the one that holds cifar10, bert and so on")
    paths = sorted(folder.glob("validation-*.csv"), key=lambda path: int(path.stem.split("-")[-1]))
    if not paths:
        raise InvalidDataError(f"{folder}: holds no validation-<batch>.csv")
    tables = [read_columns(path, ("progress", "grad_sqr", "grad_var")) for path in paths]
    epochs = min(EPOCHS[name], *(len(table["progress"]) for table in tables))
    ends = np.min([numbers(table, "progress")[:epochs] for table in tables], axis=0)
    gradients = [
        np.column_stack([numbers(table, "grad_sqr")[:epochs], numbers(table, "grad_var")[:epochs]]) for table in tables
    ]
    steps: dict[str, ProfiledSteps] = {}
    for kind, suffix in SUFFIXES.items():
        place, scale = folder / f"placements-{suffix}.csv", folder / f"scalability-{suffix}.csv"
        if place.exists() and scale.exists():
            steps[kind] = MeasuredSteps(
                read_columns(place, ("placement", "local_bsz", "step_time", "sync_time")),
                read_columns(scale, ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")),
                LOCAL_LIMIT.get((name, kind)),
            )
    batches = np.array([float(path.stem.split("-")[-1]) for path in paths])
    return ProfiledApplication(APPLICATIONS[name], ends, batches, np.array(gradients), steps)


def placement_name(placement: Sequence[int]) -> str:
    """Return the GPUs on each node as digits, in their lexicographically smallest rotation."""
    counts = tuple(placement)
    best = min(counts[i:] + counts[:i] for i in range(len(counts)))
    return "".join(map(str, best))


def numbers(table: Mapping[str, Column], name: str) -> Floats:
    """Return a column as float64."""
    return np.asarray(table[name], dtype=np.float64)
