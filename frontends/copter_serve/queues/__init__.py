"""Queues with quotas that borrow from each other: their rules as rows of a linear program, and Kueue's scheduler
test.
"""

from copter_serve.queues.admission_model import AdmissionModel, AdmissionPlan
from copter_serve.queues.ask import Ask
from copter_serve.queues.errors import QueueError, QuotaError
from copter_serve.queues.quota_tree import Quota, QuotaTree

__all__ = ["AdmissionModel", "AdmissionPlan", "Ask", "QueueError", "Quota", "QuotaError", "QuotaTree"]
