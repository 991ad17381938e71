"""The statistical efficiency of a batch size (docs/method/goodput.md, G5 and G6; Pollux, OSDI '21)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from copter.errors import InvalidDataError


def efficiency(noise_scale: ArrayLike, init_batch_size: int, batch_size: ArrayLike) -> NDArray[np.float64]:
    """Return the progress per sample at `batch_size` relative to `init_batch_size` (G5); shapes broadcast.

    Parameters
    ----------
    noise_scale : array_like
        Gradient noise scale, in samples, >= 0.
    init_batch_size : int
        The batch size M0 at which efficiency is 1.
    batch_size : array_like
        Total batch, in samples, >= M0.

    Returns
    -------
    ndarray
        Efficiency, in (0, 1].
    """
    noise = np.asarray(noise_scale, dtype=np.float64)
    return np.asarray((noise + init_batch_size) / (noise + np.asarray(batch_size)), dtype=np.float64)


def noise_scale_at(noise_scale: Sequence[float], progress: float) -> float:
    """Return the noise scale, in samples, at a fraction of training; interpolated geometrically (G6).

    Raises
    ------
    InvalidDataError
        If `progress` is not from 0 to 1.
    """
    if not 0 <= progress <= 1:
        raise InvalidDataError(f"progress is {progress}, must be a fraction from 0 to 1")
    grid = np.linspace(0.0, 1.0, len(noise_scale))
    return float(np.exp(np.interp(progress, grid, np.log(noise_scale))))
