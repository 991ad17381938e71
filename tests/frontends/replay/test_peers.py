"""Peers on a tape with every kind of edit: kept programs, column generation, and stubs of licensed solvers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from copter import Model, Session, Settings
from copter.problem.checker import check
from copter.session.playback import Playback
from copter_frontends.replay import runs
from copter_frontends.replay.peers import LICENSED, PEERS, Limits, keeps_state, peer_for
from copter_frontends.replay.program import Overlap
from copter_frontends.replay.worker import AGREED, Programs
from tests.frontends.replay import licensed_stubs

ROUNDS = 30


def edited(path: Path, rounds: int = ROUNDS, sense: str = "max", seed: int = 5) -> None:
    """A tape on which requests, rows, costs, bounds, sides and coefficients come, go and change."""
    rng = np.random.default_rng(seed)
    sign = 1.0 if sense == "max" else -1.0
    model = Model(sense=sense)  # type: ignore[arg-type]
    for name in ("a", "b", "c"):
        model.add_resources(name, 25.0)

    def add(name: str) -> None:
        usage = {each: rng.integers(0, 4, 8).astype(float) for each in ("a", "b", "c")}
        model.add_request(name, sign * rng.uniform(1, 9, 8), usage, limit=1.0)

    for at in range(40):
        add(f"r{at}")
    session = Session(model, Settings(threads=1))
    session.record(path)
    session.solve()
    for at in range(rounds - 1):
        model.remove_request(f"r{at}" if at < 20 else f"s{at - 20}")
        add(f"s{at}")
        if at < 10:
            model.update_cost(f"r{at + 21}", sign * rng.uniform(1, 9, 8))
        if at % 3 == 0 and at < 20:
            usage = {"a": rng.integers(1, 5, 8).astype(float)}
            model.update_usage(f"r{at + 20}", usage | ({"d": np.ones(8)} if at > 3 else {}))
        model.add_resources("b", 2.0 if at % 2 else -1.0) if at % 2 else model.remove_resources("b", 1.0)
        if at == 3:
            model.add_resources("d", 5.0)
        session.solve()
    session.record(None)


def answers(path: Path, way: str) -> list[tuple[Any, Any, float]]:
    """(answer, judged point, recorded objective) of each round, in this process."""
    peer, programs, found = peer_for(way, 1), Programs(), []
    for played in Playback(path):
        answer = peer.round(programs.of(played.session.model), Limits(60.0))[0]
        lp = played.session.model.to_linear_program()
        judged = None
        if answer.x is not None and answer.y is not None:
            judged = check(lp, np.clip(answer.x, lp.col_lower, lp.col_upper), answer.y)
        found.append((answer, judged, played.mark["answer"]["objective"]))
    return found


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("way", ["highs_columns_warm", "glop_columns_warm", "soplex_warm"])
def test_a_peer_that_keeps_its_program_proves_every_round(tmp_path: Path, way: str, sense: str) -> None:
    pytest.importorskip({"highs": "highspy", "glop": "ortools", "soplex": "pyscipopt"}[way.partition("_")[0]])
    edited(tmp_path / "t", sense=sense)
    found = answers(tmp_path / "t", way)
    assert len(found) == ROUNDS
    for answer, judged, told in found:
        assert answer.optimal
        assert answer.objective == pytest.approx(told, rel=1e-6)
        assert max(judged.primal, judged.dual, judged.gap) <= AGREED


def test_the_master_of_column_generation_has_few_columns_and_forgets_those_of_ended_requests(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    from copter_frontends.replay.peers.column_generation import ColumnPeer

    edited(tmp_path / "t")
    peer, programs, sizes = peer_for("highs_columns_warm"), Programs(), []
    assert isinstance(peer, ColumnPeer)
    for played in Playback(tmp_path / "t"):
        program = programs.of(played.session.model)
        peer.round(program, Limits(60.0))
        known = peer.known
        assert known is not None
        left = Overlap.of(known.column_key, program.column_key).gone
        assert np.all(known.col_upper[left] == 0.0)
        assert 2 * len(left) <= known.shape[1] - len(left)
        sizes.append(known.shape[1] / program.shape[1])
    assert max(sizes) < 0.8


def test_costs_as_high_as_a_bound_do_not_hide_a_better_column(tmp_path: Path) -> None:
    """A request whose column is at its bound of 1 may have its price on that bound; the bound is left to the row."""
    pytest.importorskip("highspy")
    model = Model(sense="max")
    model.add_resources("a", 1.0)
    for name in ("one", "two"):
        model.add_request(name, [1.0, 3.0, 2.9], {"a": [0.0, 1.0, 0.5]}, limit=1.0)
    session = Session(model, Settings(threads=1))
    session.record(tmp_path / "t")
    session.solve()
    session.record(None)
    ((answer, judged, told),) = answers(tmp_path / "t", "highs_columns_warm")
    assert answer.objective == pytest.approx(told)
    assert max(judged.primal, judged.dual, judged.gap) <= AGREED


@pytest.mark.parametrize("way", ["highs_columns_warm", "glop_columns_warm"])
def test_a_master_without_a_point_takes_in_all_columns(tmp_path: Path, way: str) -> None:
    """Row "a" asks for more than the best column of each request gives, in the first round and in later ones."""
    pytest.importorskip({"highs": "highspy", "glop": "ortools"}[way.partition("_")[0]])
    model = Model(sense="min")
    model.add_resource("a", 9.0, lower=3.0)
    for name in ("one", "two"):
        model.add_request(name, [1.0, 5.0, 7.0], {"a": [0.0, 1.0, 4.0]}, limit=1.0)
    session = Session(model, Settings(threads=1))
    session.record(tmp_path / "t")
    for least in (3.0, 1.0, 6.0, 2.0):
        model.update_counts(["a"], [9.0], [least])
        session.solve()
    session.record(None)
    found = answers(tmp_path / "t", way)
    assert len(found) == 4
    for answer, judged, told in found:
        assert answer.optimal
        assert answer.objective == pytest.approx(told)
        assert max(judged.primal, judged.dual, judged.gap) <= AGREED


@pytest.mark.parametrize("way", [way for name in LICENSED for way in PEERS[name][1]])
@pytest.mark.parametrize("sense", ["max", "min"])
def test_a_licensed_solver_follows_every_edit_by_its_own_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, sense: str
) -> None:
    name = PEERS[way.partition("_")[0]][0]
    monkeypatch.setitem(sys.modules, name, getattr(licensed_stubs, name))
    monkeypatch.delitem(sys.modules, f"copter_frontends.replay.peers.{way.partition('_')[0]}", raising=False)
    edited(tmp_path / "t", rounds=12, sense=sense)
    for answer, judged, told in answers(tmp_path / "t", way):
        assert answer.optimal
        assert answer.objective == pytest.approx(told, rel=1e-6)
        assert max(judged.primal, judged.dual, judged.gap) <= AGREED
    monkeypatch.delitem(sys.modules, f"copter_frontends.replay.peers.{way.partition('_')[0]}")


def test_a_row_with_two_sides_and_one_whose_sides_change_are_passed_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import scipy.sparse as sp

    from copter_frontends.replay.program import Program

    def program(low: float, high: float) -> Program:
        return Program(
            c=np.array([1.0]), A=sp.csc_array(np.array([[1.0]])), row_lower=np.array([low]), row_upper=np.array([high]),
            col_lower=np.zeros(1), col_upper=np.array([10.0]), column_key=np.array([1 << 32]),
            row_key=np.array([2 << 32]), sense="min",
        )  # fmt: skip

    sides = [(2.0, 5.0), (3.0, 3.0), (-np.inf, 4.0), (1.0, np.inf), (2.5, 4.5)]
    for way in ("gurobi_dual_warm", "cplex_dual_warm", "copt_dual_warm"):
        room = way.partition("_")[0]
        name = PEERS[room][0]
        monkeypatch.setitem(sys.modules, name, getattr(licensed_stubs, name))
        monkeypatch.delitem(sys.modules, f"copter_frontends.replay.peers.{room}", raising=False)
        peer: Any = peer_for(way, 1)
        found = [peer.round(program(*each), Limits(9.0))[0].objective for each in sides]
        assert found == pytest.approx([2.0, 3.0, 0.0, 1.0, 2.5])
        monkeypatch.delitem(sys.modules, f"copter_frontends.replay.peers.{room}")


def test_all_rounds_before_the_counted_ones_are_solved_and_the_first_is_cold(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    edited(tmp_path / "t", rounds=6)
    asked = runs.Asked(str(tmp_path / "t"), 2, 5, from_nothing=True, judged=False)
    for run in (runs.run_copter(asked), runs.run_peer("highs_columns_warm", asked)):
        assert [row["round"] for row in run.rows] == [2, 3, 4]
        assert [row["round"] for row in run.first] == [0]
        assert [row["start"] for row in run.first + run.rows] == ["cold", "warm", "warm", "warm"]
        assert run.counted == run.rows
    scratch = runs.run_peer("highs_simplex_cold", asked)
    assert {row["start"] for row in scratch.counted} == {"scratch"}
    whole = runs.run_copter(runs.Asked(str(tmp_path / "t"), from_nothing=True, judged=False))
    assert len(whole.rows) == 6
    assert len(whole.counted) == 5
    recorded = runs.run_copter(runs.Asked(str(tmp_path / "t"), judged=False))
    assert [row["start"] for row in recorded.rows] == ["warm"] * 6


def test_ratios_are_of_rounds_after_the_first_that_both_proved() -> None:
    def rows(seconds: list[float], unproved: int, start: str = "warm") -> list[dict[str, Any]]:
        return [
            {"round": at, "lp_s": each, "verified": at != unproved, "start": start if at else "cold"}
            for at, each in enumerate(seconds)
        ]

    copters = runs.Run("copter", rows([100.0, 1.0, 2.0, 1.0, 1.0], 2))
    other = runs.Run("x", rows([1.0, 3.0, 50.0, 4.0, 8.0], 4))
    found = runs.compared(other, copters)
    assert (found.rounds, found.total, found.median) == (2, 7.0 / 2.0, 3.0)
    assert not found.enough
    assert runs.compared(runs.Run("y", rows([1.0], 9)), copters).rounds == 0
    many = runs.Run("z", rows([1.0] * 21, 99))
    assert runs.compared(many, many).enough


def test_a_peer_whose_time_is_over_has_its_twenty_short_rounds_first(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    edited(tmp_path / "t")
    run = runs.run_peer("highs_dual_warm", runs.Asked(str(tmp_path / "t"), peer_budget_s=1e-9))
    assert len(run.counted) == runs.LEAST_ROUNDS
    assert run.ended == f"its 1e-09 s for this tape are over after {runs.LEAST_ROUNDS + 1} rounds"


def test_a_peer_whose_rounds_are_long_ends_after_the_first_counted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SHORT_S", 1e-12)
    cold = {"start": "cold", "total_s": 1.0, "optimal": True}
    long = {"start": "warm", "total_s": 1.0, "optimal": True}
    assert runs._goes_on(cold, [cold])
    assert not runs._goes_on(cold | {"optimal": False}, [cold])
    assert not runs._goes_on(long, [cold, long])


def test_ways_that_keep_no_state_are_told_apart() -> None:
    assert keeps_state("highs_columns_warm")
    assert not keeps_state("gurobi_barrier_cold")
    assert not keeps_state("highs_ipm_cold_no_crossover_1e-6")
