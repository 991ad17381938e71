"""A policy for jobs with known speeds only, which maximises the weighted speed-up (docs/reference/service.md)."""

from copter_serve.allocation.policy import AllocationPolicy
from copter_serve.allocation.rates import Rates, checked_rates, default_rates, options_of

__all__ = ["AllocationPolicy", "Rates", "checked_rates", "default_rates", "options_of"]
