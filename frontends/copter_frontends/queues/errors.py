"""What can be wrong with queues, quotas and the files of them; every message says what, where and how to mend it."""

from copter_frontends.vocabulary.errors import FrontendError


class QueueError(FrontendError, ValueError):
    """Queues, quotas or workloads that cannot be."""


class QuotaError(QueueError):
    """Quotas that contradict each other, or that nothing can satisfy."""
