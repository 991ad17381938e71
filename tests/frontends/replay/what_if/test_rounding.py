"""Effects that are rounding print as nothing."""

from __future__ import annotations

from types import SimpleNamespace

from copter.problem.explanation import CapacityEffect, lines_of
from copter_frontends.replay.what_if.round import Answer, interval


def test_prices_and_changes_that_are_rounding_are_zero() -> None:
    answer = Answer(
        "add 1 a100", (8.0, 8.000000000000002), (-1e-15, 2e-15), (-1e-15, 0.25), [], [], {}, (1, 1),
        ({"a100": 4.946e-20, "t4": 0.5}, {"a100": 0.0, "t4": 0.25, "h100": -0.0}),
    )  # fmt: skip
    text = answer.as_text()
    assert "a100 0 -> 0, t4 0.5 -> 0.25, h100 none -> 0" in text
    assert "8 after (+0)" in text
    assert "the best plan's value changes by +0\n" in text
    assert "optimum changes by +0 to +0.25 (certified)" in text
    assert interval((1e-15, 2e-15)) == "+1e-15 to +2e-15 (certified)"  # without a scale it may be all there is


def test_a_range_of_one_point_has_no_rate() -> None:
    explained = SimpleNamespace(
        given=[], request="job", objective=1.0, limit_dual=0.0, prices={"a100": 0.00145}, options=[], weight_up=None,
        weight_down=None, price_turns={},
        capacity={"a100": CapacityEffect({}, 16.0, 16.0 + 1e-12), "t4": CapacityEffect({}, 2.0, 4.0)},
    )  # fmt: skip
    lines = list(lines_of(explained, 3))  # type: ignore[arg-type]
    assert "  at 16 of a100 other columns come in: no rate holds beside it" in lines
    assert "  for each unit of t4 from 2 to 4: no change" in lines
