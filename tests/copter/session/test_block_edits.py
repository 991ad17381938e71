"""Models with private rows, least sums and ranged resources, edited at random: always what a fresh model is."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from judge import assert_optimal, is_infeasibility_ray

from copter import Model, Session, Status
from tests.copter.block_player import BlockPlayer
from tests.copter.by_highs import highs
from tests.copter.consistent import require_consistent
from tests.copter.plain import bits, innards, played
from tests.copter.session.test_durability import killed

seeds = st.integers(0, 2**32 - 1)
KINDS = BlockPlayer().edits


class Edited(RuleBasedStateMachine):
    """Every edit, alone and in batches; batches that fail; copies; solves."""

    edits = 0  # that were done, over all examples

    def __init__(self) -> None:
        super().__init__()
        self.player = BlockPlayer()
        self.session = Session(self.player.model)

    @initialize()
    def begin(self) -> None:
        rng = np.random.default_rng(0)
        for edit in (BlockPlayer.more, BlockPlayer.more, BlockPlayer.more, BlockPlayer.declare, BlockPlayer.add):
            edit(self.player, rng)

    @rule(kind=st.sampled_from(KINDS), seed=seeds)
    def edit(self, kind: object, seed: int) -> None:
        before = self.player.model.version
        kind(self.player, np.random.default_rng(seed))  # type: ignore[operator]
        Edited.edits += self.player.model.version - before

    @rule(kind=st.sampled_from(KINDS), seed=seeds)
    def edit_more(self, kind: object, seed: int) -> None:
        self.edit(kind, seed)

    @rule(seed=seeds)
    def fail(self, seed: int) -> None:
        """A batch that ends in an error leaves everything as it was, to the last bit."""
        rng, before, was = np.random.default_rng(seed), innards(self.player.model), self.player.plain
        made, self.player.plain = dict(self.player.made), copy.deepcopy(was)
        with pytest.raises(ZeroDivisionError), self.player.model.batch():  # noqa: PT012
            for _ in range(int(rng.integers(1, 8))):
                self.player.step(rng)
            raise ZeroDivisionError
        self.player.plain, self.player.made = was, made
        assert innards(self.player.model) == before

    @rule()
    def copied(self) -> None:
        again = pickle.loads(pickle.dumps(self.session))
        assert innards(again.model) == innards(self.player.model)

    @rule()
    def solve(self) -> None:
        fresh, model = self.player.plain.build(), self.player.model
        assert bits(model) == bits(fresh)
        require_consistent(model.ledger)
        solution, other = self.session.solve(), Session(fresh).solve()
        program = model.to_linear_program()
        assert solution.status is other.status
        if 0 in program.shape:
            return
        status, best, _, _ = highs(program)
        if solution.status is Status.PRIMAL_INFEASIBLE:
            assert "Infeasible" in str(status)
            assert is_infeasibility_ray(program, solution.ray)
            return
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert other.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert solution.bound >= best - 1e-7 * (1 + abs(best))
        assert_optimal(program, solution.x, solution.y)
        np.testing.assert_allclose(solution.reduced_costs, program.c - program.A.T @ solution.y, atol=1e-9)


def run(examples: int, steps: int) -> None:
    health = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        Edited,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=health, database=None
        ),
    )


@pytest.mark.slow
def test_edits_in_random_order() -> None:
    run(examples=10, steps=40)


@pytest.mark.long
def test_edits_in_random_order_for_long() -> None:
    Edited.edits = 0
    while Edited.edits < 10_000:
        run(examples=40, steps=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_some_instants(seed: int, tmp_path: Path) -> None:
    killed(tmp_path, seed, random.Random(seed).uniform(0.0, 0.5), BlockPlayer)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_killed_at_200_instants(seed: int, tmp_path: Path) -> None:
    killed(tmp_path, seed, random.Random(seed).uniform(0.0, 1.5), BlockPlayer)


@pytest.mark.parametrize("seed", range(4))
def test_a_journal_alone_and_with_a_snapshot_is_the_model(seed: int, tmp_path: Path) -> None:
    player, rng = BlockPlayer(), np.random.default_rng(seed)
    session = Session(player.model, journal=tmp_path / "journal")
    for _ in range(40):
        player.step(rng)
    session.solve()
    session.model.ledger.journal.close()
    again = Session.load(tmp_path / "journal")
    assert innards(again.model) == innards(player.model) == innards(played(seed, 40, BlockPlayer).model)
    again.save(tmp_path / "snapshot")
    player.model, before = again.model, again.solve()
    again.save(tmp_path / "snapshot")
    again.model.ledger.journal.close()
    last = Session.load(tmp_path / "snapshot")
    solution = last.solve()
    assert solution.status is before.status
    if before.status is Status.OPTIMAL:
        assert (solution.pricing_passes, solution.iterations) == (1, 0)
        np.testing.assert_array_equal(solution.x, before.x)
    last.model.ledger.journal.close()


@pytest.mark.parametrize("integer", [False, True])
def test_a_column_at_zero_between_its_bounds_is_read_as_zero(integer: bool) -> None:
    """What a request trades: from -2 to 2, and 0 is best; found by pivots, as the second solve is."""
    model = Model("max")
    model.add_resources("r", 1.0)
    model.add_request("job", [3.0], {"r": [1.0]}, integer=integer)
    model.add_request("trade", [-4.0], {"r": [-1.0]}, lower=-2.0, upper=2.0, limit=np.inf)
    session = Session(model)
    for cost in (-4.0, -3.5, -3.25):
        model.update_cost("trade", [cost])
        model.update_column_cost("job", 0, 5.0)
        model.set_count("r", 1.0)
        solution = session.solve()
        lp = model.to_linear_program()
        assert lp.c @ solution.x == pytest.approx(solution.objective)
        assert (lp.A @ solution.x <= lp.row_upper + 1e-9).all()
