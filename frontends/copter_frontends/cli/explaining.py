"""A saved run's program solved again, and one job's explanation as lines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from difflib import get_close_matches

from copter import Explanation, Session, Status
from copter_frontends.policy_kit.lp_policy import LpPolicy
from copter_frontends.simulator import load_run

SHOWN = 5  # names in a message


def explanation_of(path: str, job: str) -> Explanation:
    """The explanation; LookupError where the run has no program, or no such job in it."""
    policy = load_run(path).policy
    if not isinstance(policy, LpPolicy):
        raise LookupError(
            f"{path}: the policy {type(policy).__name__} solves no linear program that could explain a job"
        )
    model = policy.model
    names: dict[str, Hashable] = {str(request): request for request in model.requests}
    if job not in names:
        near = get_close_matches(job, names, SHOWN) or list(names)[:SHOWN]
        raise LookupError(f"{path}: there is no job {job!r} in the program; there are {len(names)}, among them {near}")
    solution = Session(model).solve()
    if solution.status is not Status.OPTIMAL:
        raise LookupError(f"{path}: the program ended {solution.status.value}, so there are no prices to explain with")
    return solution.explain(names[job])


def print_explanation(explanation: Explanation, most: int) -> None:
    """Lines for a reader."""
    given = explanation.given
    got = "; ".join(told(option.value, option.usage) for option in given) or "nothing"
    print(f"{explanation.request}: {got}")
    print(f"  its part of the objective {explanation.objective:.6g}, dual of its limit {explanation.limit_dual:.6g}")
    print(
        "  prices: " + (", ".join(f"{name} {price + 0.0:.6g}" for name, price in explanation.prices.items()) or "none")
    )
    print(f"  {'option':>6} {'given':>7} {'worth':>10} {'charge':>10} {'loss':>10}  uses")
    for option in explanation.options[:most]:
        print(
            f"  {option.column:>6} {option.value:>7.3g} {option.cost:>10.4g} {option.charge:>10.4g} "
            f"{option.loss:>10.4g}  {uses(option.usage)}"
        )
    left = len(explanation.options) - most
    if left > 0:
        print(f"  ... and {left} more, with losses of {explanation.options[most].loss:.4g} and up")
    for word, turn in (("above", explanation.weight_up), ("below", explanation.weight_down)):
        if turn is not None:
            print(f"  with a weight {word} {turn.at:.4g} times its own: {goes_to(turn.column)}")
    for name, (low, high) in explanation.price_turns.items():
        for word, turn in (("below", low), ("above", high)):
            if turn is not None:
                print(f"  with a price of {name} {word} {turn.at:.4g}: {goes_to(turn.column)}")
    for name, effect in explanation.capacity.items():
        rates = ", ".join(f"option {column} {rate:+.3g}" for column, rate in effect.rates.items()) or "no change"
        print(f"  for each unit of {name} from {effect.low:.6g} to {effect.high:.6g}: {rates}")


def goes_to(column: int | None) -> str:
    """What a turn leads to."""
    return "nothing" if column is None else f"option {column}"


def uses(usage: Mapping[Hashable, float]) -> str:
    """A usage in words."""
    return ", ".join(f"{units:g} {name}" for name, units in usage.items()) or "nothing"


def told(value: float, usage: Mapping[Hashable, float]) -> str:
    """A share of an option in words."""
    return uses(usage) if value == 1.0 else f"{value:.3g} of ({uses(usage)})"
