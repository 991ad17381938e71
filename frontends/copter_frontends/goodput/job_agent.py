"""The agent of a running job: it measures steps, fits the throughput model, and tunes the batch (G12 and G13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from copter_frontends.goodput.batch_kernel import EPSILON, best_batches
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.goodput.profiled import ProfiledApplication
from copter_frontends.goodput.refitting import Observation, refit
from copter_frontends.goodput.throughput import ThroughputParameters

ANY_TYPE = "any"  # key of a type-blind agent's points and model
MOST_NOISE = 1e18  # noise scale, in samples, of a gradient without signal

Seen = dict[str, dict[tuple[int, int, int], tuple[float, float]]]
"""(step, synchronisation) in seconds by GPU type and (nodes, GPUs, local batch)."""


@dataclass(slots=True)
class Memory:
    """What jobs of one application have measured, for the next one (thesis 6.2).

    Attributes
    ----------
    seen : dict
        Steps, as an agent keeps them.
    most : dict of GPU type to int
        Most GPUs on which one of the jobs has run.
    """

    seen: Seen = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)


class FitCache:
    """A cache of fits by their observations, which jobs of one application often share."""

    def __init__(self) -> None:
        self._known: dict[tuple[Observation, ...], ThroughputParameters] = {}

    def fit(self, seen: Sequence[Observation]) -> ThroughputParameters:
        """Return the fit of these observations."""
        key = tuple(sorted(seen))
        result = self._known.get(key)
        if result is None:
            result = self._known[key] = refit(key)
        return result


class JobAgent:
    """The steps that a job has observed, the model fitted to them, and its current batch.

    Parameters
    ----------
    application : ProfiledApplication
        The job's true behaviour, of which the agent knows only its observations.
    fits : FitCache
    max_batch_size : int
        Largest total batch that the agent chooses.
    fixed_batch : int, optional
        A total batch that may not be changed (strong scaling).
    type_blind : bool
        Whether to fit one model to the observations on all GPU types. Of two steps that differ in type only, the first
        one counts.

    Attributes
    ----------
    local, accumulation : int
        Samples per GPU and gradient, and number of gradients summed before the synchronised one.
    """

    def __init__(
        self,
        application: ProfiledApplication,
        fits: FitCache,
        max_batch_size: int,
        fixed_batch: int | None = None,
        type_blind: bool = False,
    ) -> None:
        self.application = application
        self.type_blind = type_blind
        self.max_batch_size = max_batch_size
        self.fixed_batch = fixed_batch
        self.local = self.accumulation = 0
        self.noise_scale: float | None = None
        self._has_run = self._remembers = False
        self._ran: dict[str, int] = {}  # most GPUs of each model's type on which it has run
        self._pipeline = application.application.pipeline
        self._fits = fits
        self._seen: Seen = {}
        self._parameters: dict[str, ThroughputParameters] = {}

    def seed(self, gpu_type: str, observations: Sequence[Observation]) -> None:
        """Add steps that were profiled before the job runs."""
        model = self._model_of(gpu_type)
        seen = self._seen.setdefault(model, {})
        seen.update({(n, k, m): (step, sync) for n, k, m, step, sync in observations})
        if seen and self._pipeline is None:
            self._fit(model)

    def remember(self, memory: Memory) -> None:
        """Start with what earlier jobs of the application have measured, as if this one had run there."""
        for model, seen in memory.seen.items():
            self._seen.setdefault(model, {}).update(seen)
            if self._pipeline is None:
                self._fit(model)
        self._ran.update(memory.most)
        self._remembers = True

    def teach(self, memory: Memory) -> None:
        """Add what this job knows to the memory of its application, if it has run."""
        if not self._has_run:
            return
        for model, seen in self._seen.items():
            memory.seen.setdefault(model, {}).update(seen)
        for model, most in self._ran.items():
            memory.most[model] = max(most, memory.most.get(model, 0))

    def seed_noise(self) -> None:
        """Set the noise scale at the start of training."""
        self.noise_scale = noise_of(self.application, self.application.init_batch_size, 0)

    def observe(
        self, gpu_type: str, placement: Sequence[int], step_s: float, sync_s: float, noise_scale: float
    ) -> None:
        """Record a step with the current batch and the noise scale measured with it."""
        self.noise_scale, self._has_run = noise_scale, True
        model = self._model_of(gpu_type)
        self._ran[model] = max(sum(placement), self._ran.get(model, 0))
        seen = self._seen.setdefault(model, {})
        key = (len(placement), sum(placement), self.local)
        if key not in seen:
            seen[key] = (step_s, sync_s)
            if self._pipeline is None:
                self._fit(model)

    def tune(self, gpu_type: str, placement: Sequence[int]) -> None:
        """Choose the batch for an allocation: the best by the fitted model, or the smallest without observations of the
        type.

        A pipeline's batch follows from its micro-batches (G15).
        """
        if self._pipeline is not None:
            self.local, self.accumulation = 1, self._pipeline.microbatches - 1
            return
        steps, gpus = self.application.steps[gpu_type], sum(placement)
        most = steps.most_local(placement)
        known = self._parameters.get(self._model_of(gpu_type))
        if self.fixed_batch is not None:
            self._split(self.fixed_batch, gpus, most)
        elif known is None or self.noise_scale is None:
            self._split(max(self.application.init_batch_size, steps.min_local * gpus), gpus, most)
        else:
            self._optimise(known, (steps.min_local, most), len(placement), gpus)
        self.local = min(self.local, steps.most_local_of(gpus) or self.local)
        whole = gpus * (self.accumulation + 1)
        self.local = max(1, min(self.local, self.max_batch_size // whole))

    def hints(self) -> TrainingHints | None:
        """Return hints for the scheduler; None before the first observation."""
        if self.noise_scale is None or not (self._parameters or (self._pipeline is not None and self._seen)):
            return None
        most = {kind: max(gpus for _, gpus, _ in seen) for kind, seen in self._seen.items() if seen}
        fresh = not (self._has_run or self._remembers)
        if self.type_blind and self._pipeline is None:
            kinds = self.application.steps
            one = dict.fromkeys(kinds, self._parameters[ANY_TYPE])
            return TrainingHints(one, dict.fromkeys(kinds, most[ANY_TYPE]), self.noise_scale, fresh)
        ran = None if fresh or most == self._ran else dict(self._ran)
        return TrainingHints(dict(self._parameters), most, self.noise_scale, fresh, ran)

    def _model_of(self, gpu_type: str) -> str:
        return ANY_TYPE if self.type_blind else gpu_type

    def _fit(self, model: str) -> None:
        seen = self._seen[model]
        self._parameters[model] = self._fits.fit([(*place, *times) for place, times in seen.items()])

    def _split(self, batch: int, gpus: int, most: int) -> None:
        """Distribute a total batch over GPUs and accumulation steps (G7)."""
        share = math.ceil(batch / gpus - EPSILON)
        self.accumulation = math.ceil(share / most - EPSILON) - 1
        if gpus == 1 and batch > self.application.init_batch_size:
            self.accumulation = max(1, self.accumulation)
        self.local = math.ceil(share / (self.accumulation + 1) - EPSILON)

    def _optimise(self, known: ThroughputParameters, limits: tuple[int, int], nodes: int, gpus: int) -> None:
        goodput, local, accumulation = np.empty(1), np.empty(1, np.int64), np.empty(1, np.int64)
        best_batches(
            known.as_array()[None, :],
            np.array([limits], dtype=np.int64),
            np.array([nodes]),
            np.array([gpus]),
            np.zeros(1, dtype=np.int64),
            self.application.init_batch_size,
            self.max_batch_size,
            True,
            0,
            np.ones(1),
            np.array([self.noise_scale]),
            goodput,
            local,
            accumulation,
        )
        if local[0]:
            self.local, self.accumulation = int(local[0]), int(accumulation[0])
        else:
            self._split(max(self.application.init_batch_size, limits[0] * gpus), gpus, limits[1])


def noise_of(application: ProfiledApplication, batch: int, epoch: int) -> float:
    """Return the noise scale in samples at a total batch in an epoch: M0 times the gradient's variance divided by
    its squared norm.
    """
    squared, variance = application.gradient(batch, epoch)
    return min(application.init_batch_size * variance / squared, MOST_NOISE) if squared > 0 else MOST_NOISE
