"""What the Sia frontend adds to a solve: goodput rows and placement, and a whole round of the policy."""

from __future__ import annotations

import numpy as np

from copter_frontends.goodput import GoodputModel
from copter_frontends.placement import Placer
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.vocabulary import Allocation, Cluster, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import scaled_cluster

GPUS = (250, 1000, 4000)
APPLICATIONS = ("cifar10", "bert", "deepspeech2", "yolov3")


class GoodputRow:
    """Goodput of one job on all its configurations."""

    params = GPUS
    param_names = ("gpus",)

    def setup(self, gpus: int) -> None:
        """A model; every call asks for another batch-size cap, so that no remembered row is met."""
        self.model = GoodputModel(configurations_of(scaled_cluster(gpus)))
        self.model.row("ncf", 0.5)
        self.calls = 0

    def time_row(self, gpus: int) -> None:
        """One row, evaluated."""
        self.calls += 1
        self.model.row("ncf", 0.5, 1000 + self.calls % 30_000)

    def track_configurations(self, gpus: int) -> int:
        """Length of the row."""
        return len(self.model.row("ncf", 0.5))


class Placement:
    """Nodes for every job of a full cluster, a tenth of them new."""

    params = GPUS
    param_names = ("gpus",)

    def setup(self, gpus: int) -> None:
        """A cluster of 8-GPU nodes whose jobs want 1 to 32 GPUs; it has been placed once."""
        rng = np.random.default_rng(0)
        self.placer = Placer(Cluster.of({"a": (gpus // 8, 8)}))
        self.before = self.demand(rng, gpus // 8 * 8, "old")
        self.previous: dict[str, Allocation] = self.placer.place(self.before, {})[0]
        kept = list(self.before.items())[len(self.before) // 10 :]
        self.wanted = dict(kept)
        room = gpus // 8 * 8 - sum(size for _, (_, size) in kept)
        self.wanted |= self.demand(rng, room, "new")

    @staticmethod
    def demand(rng: np.random.Generator, gpus: int, prefix: str) -> dict[str, tuple[str, int]]:
        """Jobs that fill so many GPUs."""
        wanted: dict[str, tuple[str, int]] = {}
        while gpus > 0:
            size = int(rng.choice([size for size in (1, 2, 4, 8, 16, 32) if size <= gpus]))
            wanted[f"{prefix}-{len(wanted)}"] = ("a", size)
            gpus -= size
        return wanted

    def time_place(self, gpus: int) -> None:
        """The placement."""
        self.placer.place(self.wanted, self.previous)

    def track_moved(self, gpus: int) -> int:
        """Jobs moved to other nodes."""
        return len(self.placer.place(self.wanted, self.previous)[1])


class Round:
    """A round of the Sia policy: one job leaves, one comes, plan."""

    params = (250, 1000)
    param_names = ("gpus",)
    number = 1

    def setup(self, gpus: int) -> None:
        """A cluster at work for three rounds."""
        self.policy = SiaPolicy(scaled_cluster(gpus))
        self.count, self.now_s = round(0.14 * gpus), 0.0
        for number in range(self.count):
            self.policy.add_job(self.job(number))
        self.first = 0
        for _ in range(3):
            self.round()

    def job(self, number: int) -> Job:
        """A job that arrives now."""
        return Job(f"job-{number}", APPLICATIONS[number % len(APPLICATIONS)], self.now_s)

    def round(self) -> object:
        """One round."""
        self.now_s += 60.0
        self.policy.remove_job(f"job-{self.first}")
        self.policy.add_job(self.job(self.first + self.count))
        self.first += 1
        return self.policy.plan(self.now_s)

    def time_round(self, gpus: int) -> None:
        """The round."""
        self.round()

    def track_gap(self, gpus: int) -> float:
        """Gap of the whole plan."""
        return float(self.round().gap)  # type: ignore[attr-defined]


GoodputRow.track_configurations.unit = "configurations"
Placement.track_moved.unit = "jobs"
Round.track_gap.unit = "relative"
