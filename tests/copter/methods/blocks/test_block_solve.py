"""Models of many coupling rows by their structure: optimal as HiGHS says, and where that is not the way, as before."""

from __future__ import annotations

import numpy as np
import pytest
from judge import judge

from copter import Model, Session, Settings, Status
from copter.methods.blocks.program import program_of
from copter.methods.blocks.solve import solve_blocks
from copter.runtime.watch import Watch
from tests.copter.by_highs import highs


def flows(seed: int, requests: int = 150, links: int = 80, integer: bool = False, ties: bool = False) -> Model:
    """Commodities with up to four paths over random links."""
    rng = np.random.default_rng(seed)
    model = Model(sense="max")
    for link in range(links):
        model.add_resources(link, float(rng.uniform(2.0, 6.0)))
    for request in range(requests):
        paths = int(rng.integers(1, 5))
        used = [rng.choice(links, 4, replace=False) for _ in range(paths)]
        usage = {int(k): [float(k in path) for path in used] for k in np.unique(np.concatenate(used))}
        cost = np.ones(paths) if ties else rng.uniform(0.5, 1.5, paths)
        limit = 1.0 if integer else float(rng.uniform(0.2, 2.0))
        model.add_request(request, cost, usage=usage, limit=limit, upper=limit, integer=integer)
    return model


def answer_of(model: Model, vertex: bool = False):
    slots = np.sort(np.array(list(model.ledger.slot_of.values()), dtype=np.int32))
    program = program_of(model.ledger.matrix, slots)
    return program, solve_blocks(program, Settings(), Watch(float("inf")), vertex)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", [False, True])
def test_the_structured_method_alone_finds_the_optimum(seed, ties):
    model = flows(seed, ties=ties)
    program, answer = answer_of(model)
    assert answer is not None
    value = -float(program.cost @ answer.x)
    assert value == pytest.approx(highs(model.to_linear_program())[1], rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_session_edited_and_solved_again_is_as_highs(seed):
    model = flows(seed)
    session = Session(model)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        solution = session.solve()
        lp = model.to_linear_program()
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(highs(lp)[1], rel=2e-6)
        judged = judge(lp, solution.x, solution.y)
        assert max(judged.primal, judged.dual, judged.gap) <= 1e-6
        for request in rng.choice(model.requests, 20, replace=False).tolist():
            model.update_limit(request, float(rng.uniform(0.0, 1.0)))
        model.remove_resources(int(rng.integers(80)), 1.0)


def test_integer_requests_get_a_vertex():
    model = flows(1, requests=200, integer=True, ties=True)
    program, answer = answer_of(model, vertex=True)
    assert answer is not None
    activity = np.zeros(program.n_rows)
    np.add.at(activity, program.row, program.value * np.repeat(answer.x, np.diff(program.start)))
    n, m = program.n_columns, program.n_rows
    tight = int((program.upper[n : n + m] - activity < 1e-7).sum())
    fractional = int(((answer.x > 1e-7) & (answer.x < 1.0 - 1e-7)).sum())
    # A basic solution: besides one column for each request, at most one a tight row.
    assert fractional <= 2 * tight


def test_an_infeasible_model_gets_the_generic_methods_verdict():
    model = flows(2)
    for link in range(80):
        model.remove_resources(link, model.count(link))
    model.add_request("must", [1.0], usage={0: [1.0]}, lower=1.0, upper=1.0, limit=1.0)
    assert answer_of(model)[1] is None
    assert Session(model).solve().status is Status.PRIMAL_INFEASIBLE


def test_an_empty_model_of_many_rows():
    model = Model()
    for link in range(80):
        model.add_resources(link, 1.0)
    assert answer_of(model)[1] is None
    solution = Session(model).solve()
    assert (solution.status, solution.objective) == (Status.OPTIMAL, 0.0)


def test_time_that_is_up_ends_the_method():
    model = flows(0)
    slots = np.sort(np.array(list(model.ledger.slot_of.values()), dtype=np.int32))
    assert solve_blocks(program_of(model.ledger.matrix, slots), Settings(), Watch(1e-9), False) is None


def test_a_stop_is_seen_within_an_iteration():
    """Ctrl-C can come at any of the questions: none of them lets the method go on."""
    model = flows(0)
    slots = np.sort(np.array(list(model.ledger.slot_of.values()), dtype=np.int32))
    program = program_of(model.ledger.matrix, slots)
    asked = [0]

    class Counting(Watch):
        def __call__(self) -> bool:
            asked[0] += 1
            return asked[0] >= self.limit_s

    answer = solve_blocks(program, Settings(), Counting(float("inf")), False)
    assert answer is not None
    total = asked[0]
    assert total > 5 * answer.iterations
    for limit in range(1, total, 7):
        asked[0] = 0
        assert solve_blocks(program, Settings(), Counting(limit), False) is None
        assert asked[0] == limit
