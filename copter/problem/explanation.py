"""Explanations of a request's allocation: prices, its columns side by side, and what would change the answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EVEN = 1e-9  # losses up to this share of a request's largest gain count as ties


@dataclass(frozen=True, slots=True)
class Option:
    """One column of a request.

    Attributes
    ----------
    column : int
    value : float
        Value of the column in the solution.
    cost : float
        Objective coefficient of the column.
    usage : dict
        Units of each resource that one unit of the column uses.
    charge : float
        Price times usage, over all resources.
    loss : float
        How much worse the objective would be for one unit of this column in place of the best one, at the present
        prices; 0 for the best.
    """

    column: int
    value: float
    cost: float
    usage: Mapping[Hashable, float]
    charge: float
    loss: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A change of weight or price at which another column becomes the request's best.

    Attributes
    ----------
    at : float
        Factor on the weight, or price, at which the best column changes.
    column : int or None
        The column that becomes the best; None if getting nothing becomes the best.
    """

    at: float
    column: int | None


@dataclass(frozen=True, slots=True)
class CapacityEffect:
    """Effect of a resource's count on a request while the basis stays the same.

    Attributes
    ----------
    rates : dict
        Change of each of the request's columns per unit added to the resource; unchanged columns are left out.
    low, high : float
        Counts of the resource between which these rates hold. A count cannot be below the resource's lower bound; where
        that bound is the one that binds, a change of the count has no effect.
    """

    rates: Mapping[int, float]
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Reasons for a request's allocation.

    Attributes
    ----------
    request : hashable
    objective : float
        The request's part of the objective.
    prices : dict
        Dual of each resource that one of the columns uses, in the model's signs.
    limit_dual : float
        Dual of the sum of the request's columns: the objective's change per unit added to the limit.
    options : tuple of Option
        All columns: the largest values first, then the smallest losses.
    weight_up, weight_down : Turn or None
        The nearest factor above (below) 1 on all the request's costs at which another column becomes the best at the
        present prices; None if there is no such factor.
    price_turns : dict
        Resource -> the nearest (lower, higher) price at which another column becomes the best while the other prices
        stay; None if there is no such price.
    capacity : dict
        Resource -> :class:`CapacityEffect`, for resources whose price is not zero. Empty if there is no unique basis: a
        degenerate vertex, private rows, or more than 500 fractional columns.
    """

    request: Hashable
    objective: float
    prices: Mapping[Hashable, float]
    limit_dual: float
    options: tuple[Option, ...]
    weight_up: Turn | None
    weight_down: Turn | None
    price_turns: Mapping[Hashable, tuple[Turn | None, Turn | None]]
    capacity: Mapping[Hashable, CapacityEffect]

    @property
    def given(self) -> tuple[Option, ...]:
        """Options with a value other than zero."""
        return tuple(option for option in self.options if option.value != 0.0)

    def as_text(self, most: int = 10) -> str:
        """Return the explanation as text, with at most `most` columns side by side."""
        return "\n".join(lines_of(self, most))

    def __str__(self) -> str:
        return self.as_text()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; resources are named by their str()."""

        def turn(one: Turn | None) -> dict[str, Any] | None:
            return None if one is None else {"at": one.at, "column": one.column}

        return {
            "request": str(self.request),
            "objective": self.objective,
            "limit_dual": self.limit_dual,
            "prices": {str(name): price for name, price in self.prices.items()},
            "options": [
                {
                    "column": option.column,
                    "value": option.value,
                    "cost": option.cost,
                    "usage": {str(name): units for name, units in option.usage.items()},
                    "charge": option.charge,
                    "loss": option.loss,
                }
                for option in self.options
            ],
            "weight_up": turn(self.weight_up),
            "weight_down": turn(self.weight_down),
            "price_turns": {str(name): [turn(low), turn(high)] for name, (low, high) in self.price_turns.items()},
            "capacity": {
                str(name): {
                    "rates": {str(j): rate for j, rate in each.rates.items()},
                    "low": each.low,
                    "high": each.high,
                }
                for name, each in self.capacity.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about one request, as arrays.

    Attributes
    ----------
    sign : float
        1 where the objective is maximised, -1 where it is minimised.
    cost, value : ndarray (n,)
    resources : list
        The resources that a column uses.
    usage : ndarray (n, resources)
    price : ndarray (resources,)
    limit_dual : float
    can_idle : bool
        Whether the request may get nothing.
    capacity : dict
    """

    sign: float
    cost: Floats
    value: Floats
    resources: list[Hashable]
    usage: Floats
    price: Floats
    limit_dual: float
    can_idle: bool
    capacity: Mapping[Hashable, CapacityEffect]


def explained(request: Hashable, facts: Facts) -> Explanation:
    """Return the explanation that follows from the facts."""
    gain, charge = facts.sign * facts.cost, facts.usage @ (facts.sign * facts.price)
    net = gain - charge
    if facts.can_idle:  # a last option: to get nothing
        gain, charge, net = np.append(gain, 0.0), np.append(charge, 0.0), np.append(net, 0.0)
    n = len(facts.cost)
    usage = np.vstack((facts.usage, np.zeros((len(net) - n, len(facts.resources)))))
    chosen = (
        int(np.argmax(facts.value)) if (facts.value > 0.0).any() else (n if facts.can_idle else int(np.argmax(net)))
    )
    size = 1.0 + float(np.abs(gain).max(initial=0.0))
    loss = np.maximum(net[chosen] - net, 0.0)
    loss[loss <= EVEN * size] = 0.0
    options = [
        Option(
            j,
            float(facts.value[j]),
            float(facts.cost[j]),
            {name: float(facts.usage[j, i]) for i, name in enumerate(facts.resources) if facts.usage[j, i] != 0.0},
            float(facts.sign * charge[j]),
            float(loss[j]),
        )
        for j in range(n)
    ]
    options.sort(key=lambda option: (-option.value, option.loss, option.column))
    down, up = turns(loss, gain[chosen] - gain, n)
    prices = {}
    for i, name in enumerate(facts.resources):
        low, high = turns(loss, usage[:, i] - usage[chosen, i], n)
        ends = [shifted(end, float(facts.price[i]), facts.sign) for end in (low, high)]
        prices[name] = (ends[0], ends[1]) if facts.sign > 0 else (ends[1], ends[0])
    return Explanation(
        request,
        float(facts.cost @ facts.value),
        dict(zip(facts.resources, facts.price.tolist(), strict=True)),
        facts.limit_dual,
        tuple(options),
        None if up is None else Turn(1.0 + up.at, up.column),
        None if down is None else Turn(1.0 + down.at, down.column),
        prices,
        facts.capacity,
    )


def shifted(turn: Turn | None, price: float, sign: float) -> Turn | None:
    """Return a turn in terms of the price; None if the price would have to change its sign."""
    at = None if turn is None else price + sign * turn.at
    return (
        None
        if turn is None or at is None or at * price < 0.0 or sign * at < 0.0 <= sign * price
        else Turn(at, turn.column)
    )


def turns(loss: Floats, slope: Floats, n: int) -> tuple[Turn | None, Turn | None]:
    """Return (step down, step up) at which ``loss + slope * step`` first reaches zero; index n means "no column"."""
    found: list[Turn | None] = []
    for side in (-1.0, 1.0):
        falling = np.flatnonzero(slope * side < 0.0)
        if not len(falling):
            found.append(None)
            continue
        steps = loss[falling] / np.abs(slope[falling])
        first = int(np.argmin(steps))
        column = int(falling[first])
        found.append(Turn(float(side * steps[first]), None if column == n else column))
    return found[0], found[1]


def lines_of(explanation: Explanation, most: int) -> Iterator[str]:
    """Yield the lines of an explanation, with at most `most` columns side by side."""
    given = explanation.given
    got = "; ".join(told(option.value, option.usage) for option in given) or "nothing"
    yield f"{explanation.request}: {got}"
    yield f"  its part of the objective {explanation.objective:.6g}, dual of its limit {explanation.limit_dual:.6g}"
    yield "  prices: " + (
        ", ".join(f"{name} {price + 0.0:.6g}" for name, price in explanation.prices.items()) or "none"
    )
    yield f"  {'option':>6} {'given':>7} {'worth':>10} {'charge':>10} {'loss':>10}  uses"
    for option in explanation.options[:most]:
        yield (
            f"  {option.column:>6} {option.value:>7.3g} {option.cost:>10.4g} {option.charge:>10.4g} "
            f"{option.loss:>10.4g}  {uses(option.usage)}"
        )
    left = len(explanation.options) - most
    if left > 0:
        yield f"  ... and {left} more, with losses of {explanation.options[most].loss:.4g} and up"
    yield from turning_points(explanation)
    for name, effect in explanation.capacity.items():
        rates = ", ".join(f"option {column} {rate:+.3g}" for column, rate in effect.rates.items()) or "no change"
        if f"{effect.low:.6g}" == f"{effect.high:.6g}":
            yield f"  at {effect.low:.6g} of {name} other columns come in: no rate holds beside it"
            continue
        yield f"  for each unit of {name} from {effect.low:.6g} to {effect.high:.6g}: {rates}"


def turning_points(explanation: Explanation) -> Iterator[str]:
    """Yield the weights and prices at which another column becomes the best."""
    for word, turn in (("above", explanation.weight_up), ("below", explanation.weight_down)):
        if turn is not None:
            yield f"  with a weight {word} {turn.at:.4g} times its own: {goes_to(turn.column)}"
    for name, (low, high) in explanation.price_turns.items():
        for word, turn in (("below", low), ("above", high)):
            if turn is not None:
                yield f"  with a price of {name} {word} {turn.at:.4g}: {goes_to(turn.column)}"


def goes_to(column: int | None) -> str:
    """Return the name of the option that becomes the best, or "nothing" for None."""
    return "nothing" if column is None else f"option {column}"


def uses(usage: Mapping[Hashable, float]) -> str:
    """Return the usage of an option as text, such as "2 a100, 1 link", or "nothing"."""
    return ", ".join(f"{units:g} {name}" for name, units in usage.items()) or "nothing"


def told(value: float, usage: Mapping[Hashable, float]) -> str:
    """Return a request's share of an option as text: "2 a100", or "0.5 of (2 a100)" for one half."""
    return uses(usage) if value == 1.0 else f"{value:.3g} of ({uses(usage)})"
