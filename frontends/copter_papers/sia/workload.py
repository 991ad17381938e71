"""The workloads of the thesis and the public simulator: each a cluster's name and a file of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from copter_frontends.simulator.workload import Workload, make_workload
from copter_frontends.vocabulary import Cluster, TraceError
from copter_frontends.vocabulary.named_clusters import named_cluster

HETEROGENEOUS, HOMOGENEOUS = "sia-het", "sia-hom"
"""Names of the clusters: 64 GPUs of three types, and of one."""


@dataclass(frozen=True, slots=True)
class ReferenceWorkload:
    """A workload of the public simulator (siasosp23/artifacts).

    Attributes
    ----------
    cluster_name : str
        See :func:`.named_cluster`.
    trace : str
        Trace from which the jobs are drawn.
    number : int
        Number of the draw.
    """

    cluster_name: str
    trace: str
    number: int

    @property
    def cluster(self) -> Cluster:
        """Return a new cluster."""
        return named_cluster(self.cluster_name)

    def path(self, data: Path) -> Path:
        """Return the workload's file in the data directory."""
        return data / "traces" / "sia" / self.trace / f"workload-{self.number}.csv"

    def read(self, data: Path, cap_batch: bool = True) -> Workload:
        """Read the workload's jobs.

        Parameters
        ----------
        data : Path
            The data directory.
        cap_batch : bool
            Whether the file's batch sizes are the jobs' `max_batch_size` (see :attr:`.Semantics.batch_limit`).

        Raises
        ------
        TraceError
            If the file is missing or cannot be read.
        """
        return make_workload(str(self.path(data)), None, 24.0, self.cluster.gpus, 0, cap_batch=cap_batch)


REFERENCE_WORKLOADS = {
    **{
        f"{trace}_{n}": ReferenceWorkload(HETEROGENEOUS, trace, n)
        for trace in ("philly", "saturn")
        for n in range(1, 6)
    },
    **{f"homog_philly_{n}": ReferenceWorkload(HOMOGENEOUS, "philly", n) for n in (1, 2)},
}
"""The twelve workloads whose results are in the data directory, by the results' names."""


def reference_workload(name: str) -> ReferenceWorkload:
    """Return the workload of this name; raises TraceError if there is none."""
    try:
        return REFERENCE_WORKLOADS[name]
    except KeyError:
        raise TraceError(f"no workload is called {name!r}; there are {', '.join(REFERENCE_WORKLOADS)}") from None
