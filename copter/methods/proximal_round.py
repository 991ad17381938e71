"""A round by proximal steps, with the interior-point method of the whole program before, after, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from copter.methods.answers import Ended, Proven
from copter.methods.choose import Choice
from copter.methods.interior_start import InteriorStart
from copter.methods.protocol import Round
from copter.methods.proximal.coordinate_descent import CoordinateDescent
from copter.methods.proximal.solve import Outcome, Solve
from copter.model.values import dense_ray, sparse_values
from copter.problem.checker import is_improving_ray, is_infeasibility_ray
from copter.problem.solution import Status

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ProximalRound:
    """A solve of a model without private rows by proximal steps; it always ends."""

    of: Round

    @classmethod
    def start(cls, given: Round) -> ProximalRound:
        """Return the method, ready to solve this round."""
        return cls(given)

    def still_optimal(self) -> None:
        """Nothing: the first pricing pass finds out."""

    def improve(self, order: tuple[Choice, ...]) -> Ended:
        """Solve; an interior choice of the order is tried first, or where the steps stall."""
        model, iterate, settings, watch = self.of.model, self.of.iterate, self.of.settings, self.of.watch
        whole = next((each for each in order if each.method == "interior"), None)
        steps = next(each for each in order if each.method != "interior")
        start = None
        if whole is not None:
            start = InteriorStart(model, iterate, settings, watch, whole, comes_first=order[0] is whole)

        if iterate.version == model.version:
            iterate.moves = False  # nothing has changed: the first pass proves it
        matrix, callback = model.ledger.matrix, self.of.callback
        kind = CoordinateDescent if steps.method == "coordinate_descent" else Solve
        outcome = kind(matrix, iterate, settings, steps, callback, self.of.offset, watch, start).run()
        if outcome.status is Status.OPTIMAL and steps.method == "proximal":
            iterate.version = model.version
        return self.ended(outcome)

    def ended(self, outcome: Outcome) -> Ended:
        """Convert the end of proximal steps; a ray that fails verification on the model is dropped."""
        model, ledger, ws = self.of.model, self.of.model.ledger, self.of.iterate.ws
        priced, status = outcome.priced, outcome.status
        values = sparse_values(ledger, ws.key, ws.x.copy(), ledger.sign * priced.y)
        ray = None
        if outcome.ray is not None:
            improving = status is Status.DUAL_INFEASIBLE
            ray = partial(dense_ray, ledger, values.key, improving, outcome.ray, model.version)
            proves = is_improving_ray if improving else is_infeasibility_ray
            if not proves(model.to_linear_program(), ray()):
                status, ray = Status.NUMERICAL_ERROR, None
        proven = Proven.of_minimised(
            model, outcome.objective, priced.bound, priced.margin, priced.certified, outcome.residuals
        )
        steps = outcome.newton_steps, outcome.passes, outcome.proximal_steps
        return Ended(status, proven, values, outcome.choice, *steps, ray)
