"""One solve from nothing, and one from where the last round ended."""

from __future__ import annotations

import resource

from copter import Session

from .problems import SIZES, Rounds, judged_gap, sia_like


class Cold:
    """A session's first solve."""

    params = SIZES
    param_names = ("requests",)
    number = 1

    def setup(self, requests: int) -> None:
        """A model that no session has seen."""
        self.model = sia_like(requests)
        self.session = Session(self.model)
        self.session.solve()  # first use of the libraries
        self.session.reset()

    def time_solve(self, requests: int) -> None:
        """Solve from nothing."""
        self.session.reset()
        self.session.solve()

    def track_gap(self, requests: int) -> float:
        """Relative gap, judged independently."""
        return judged_gap(self.model, self.session.solve())

    def track_passes(self, requests: int) -> float:
        """Pricing passes."""
        return self.session.solve().pricing_passes

    def track_newton_steps(self, requests: int) -> float:
        """Newton steps."""
        return self.session.solve().iterations


class Warm:
    """A round after a round: 1 % of the requests replaced, all costs moved by up to 3 %."""

    params = SIZES
    param_names = ("requests",)
    number = 1

    def setup(self, requests: int) -> None:
        """Three rounds behind us."""
        self.rounds = Rounds(requests)
        for _ in range(3):
            self.rounds.round()

    def time_round(self, requests: int) -> None:
        """Edit and solve."""
        self.rounds.round()

    def track_gap(self, requests: int) -> float:
        """Relative gap, judged independently."""
        return judged_gap(self.rounds.model, self.rounds.round())

    def track_passes(self, requests: int) -> float:
        """Pricing passes of one round."""
        return self.rounds.round().pricing_passes

    def track_newton_steps(self, requests: int) -> float:
        """Newton steps of one round."""
        return self.rounds.round().iterations

    def track_peak_memory(self, requests: int) -> float:
        """Peak memory of the process, in MB."""
        self.rounds.round()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


Warm.track_gap.unit = Cold.track_gap.unit = "relative"
Warm.track_peak_memory.unit = "MB"
for _tracker in (Warm.track_passes, Cold.track_passes, Warm.track_newton_steps, Cold.track_newton_steps):
    _tracker.unit = "steps"
