"""A simulation whose policy is told of every running job's progress every round, as by the paper's watchers (5.5)."""

from __future__ import annotations

from copter_frontends.simulator import RoundRecord, Simulation


class ReportingSimulation(Simulation):
    """As :class:`~copter_frontends.simulator.Simulation`, which by itself reports progress at the ends of phases only.

    A :class:`~copter_frontends.simulator.table_source.TableSource` has one phase, so that without reports no policy
    would know how much of a job is left.
    """

    def step(self, warmup: bool = False) -> RoundRecord:
        """Simulate one round, and note how far the running jobs are."""
        record = super().step(warmup)
        for job_id, row in self._active.items():
            if self._table.gpus[row] > 0:
                self._news.setdefault(job_id, {})["progress"] = float(self._table.progress[row])
        return record
