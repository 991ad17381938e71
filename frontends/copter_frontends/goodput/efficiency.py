"""The statistical efficiency of a batch size (docs/method/goodput.md, G5; Pollux, OSDI '21)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
