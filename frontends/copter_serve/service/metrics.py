"""The service's metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

# Upper ends, in seconds, of the histogram of requests and journal writes.
FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
# Upper ends, in seconds, of the histogram of plans.
ROUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counters, gauges and histograms in a registry of their own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter(
            "copter_requests", "Requests by route and status.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "copter_request_seconds", "Seconds until the answer began.", ["route"], buckets=FAST, registry=registry
        )
        self.deltas = Counter("copter_deltas", "Deltas that were acknowledged.", ["cluster"], registry=registry)
        self.journal_seconds = Histogram(
            "copter_journal_write_seconds", "Seconds of a write of the journal.", buckets=FAST, registry=registry
        )
        self.journal_records = Counter("copter_journal_records", "Records written to journals.", registry=registry)
        self.plans = Counter("copter_plans", "Plans by status.", ["cluster", "status"], registry=registry)
        self.plan_age = Gauge(
            "copter_plan_age_seconds", "Seconds since the last plan was made.", ["cluster"], registry=registry
        )
        self.round_seconds = Histogram(
            "copter_round_seconds", "Seconds that a plan took.", ["cluster"], buckets=ROUNDS, registry=registry
        )
        self.gap = Gauge("copter_plan_gap", "Relative gap of the last plan.", ["cluster"], registry=registry)
        self.jobs = Gauge("copter_jobs", "Jobs when the last plan was made.", ["cluster", "state"], registry=registry)
        self.gpus = Gauge("copter_gpus", "GPUs at the last plan.", ["cluster", "gpu_type", "state"], registry=registry)
        self.price = Gauge(
            "copter_price", "What one more GPU is worth to the objective.", ["cluster", "gpu_type"], registry=registry
        )
        self.restarts = Gauge(
            "copter_scheduler_restarts", "Times it was started again.", ["cluster"], registry=registry
        )
        self.ready = Gauge(
            "copter_scheduler_ready", "Whether the scheduler's process runs.", ["cluster"], registry=registry
        )
        self.silences = Gauge(
            "copter_scheduler_silences", "Times it was ended because it was silent.", ["cluster"], registry=registry
        )
        self.watchers = Gauge("copter_watchers", "Streams of plans.", ["cluster"], registry=registry)

    def journal_written(self, records: int, seconds: float) -> None:
        """Count a journal write; called by the journal's thread."""
        self.journal_seconds.observe(seconds)
        self.journal_records.inc(records)

    def planned(self, cluster: str, header: Mapping[str, Any]) -> None:
        """Count a new plan, and set the cluster's gauges (gap, jobs, GPUs, prices) to its figures."""
        self.plans.labels(cluster, header["status"]).inc()
        self.round_seconds.labels(cluster).observe(header["round_s"])
        self.gap.labels(cluster).set(header["gap"] or 0.0)
        self.jobs.labels(cluster, "running").set(header["running"])
        self.jobs.labels(cluster, "waiting").set(header["jobs"] - header["running"])
        for kind, gpus in header["capacity"].items():
            self.gpus.labels(cluster, kind, "capacity").set(gpus)
            self.gpus.labels(cluster, kind, "used").set(header["used"].get(kind, 0))
        for kind, price in header["prices"].items():
            self.price.labels(cluster, kind).set(price or 0.0)

    def forget(self, cluster: str) -> None:
        """Remove a cluster's series."""
        gauges = (self.gap, self.jobs, self.gpus, self.price, self.plan_age, self.ready, self.silences, self.restarts)
        for metric in (self.deltas, self.plans, self.round_seconds, self.watchers, *gauges):
            metric.remove_by_labels({"cluster": cluster})

    def text(self) -> bytes:
        """Return all metrics in Prometheus's format."""
        return generate_latest(self.registry)
