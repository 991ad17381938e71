"""The refusal of one write, which does not touch the others."""

from __future__ import annotations

from copter_serve.queues import QueueError


class RefusedError(QueueError):
    """A change that the API server does not accept: the object's rules, or the account's rights, forbid it."""
