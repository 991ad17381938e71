"""How kernels over arrays are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel with Numba, cached on disk; it holds no lock, and divides by zero as NumPy does."""
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))
