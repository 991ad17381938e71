"""Errors in queues, quotas and their files; each message says what is wrong, where, and how to mend it."""

from copter_frontends.vocabulary.errors import FrontendError


class QueueError(FrontendError, ValueError):
    """Invalid queues, quotas or workloads."""


class QuotaError(QueueError):
    """Quotas that contradict each other or cannot be satisfied."""
