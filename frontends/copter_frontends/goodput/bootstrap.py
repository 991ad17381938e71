"""A throughput model for an unprofiled GPU type, derived from a profiled one (thesis 3.3.2, equation 3.1; G9)."""

from __future__ import annotations

from dataclasses import replace

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.throughput import ThroughputParameters


def bootstrapped(source: ThroughputParameters, slowdown: float) -> ThroughputParameters:
    """Return the model of a GPU type whose computing takes `slowdown` times as long as on `source`, with equal
    synchronisation.

    Equation (3.1) scales the whole throughput by the ratio of one-GPU throughputs. On one GPU this equals scaling the
    compute time. A one-GPU measurement says nothing about the network, so synchronisation times are kept.

    Raises
    ------
    InvalidDataError
        If `slowdown` is not finite and > 0.
    """
    if not 0 < slowdown < float("inf"):
        raise InvalidDataError(f"slowdown is {slowdown}, must be finite and > 0 (source over target throughput)")
    return replace(source, alpha_c=source.alpha_c * slowdown, beta_c=source.beta_c * slowdown)
