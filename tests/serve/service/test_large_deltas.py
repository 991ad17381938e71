"""Large deltas: refused or read in steps, so that nobody else waits; a job does not grow without end."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import ClusterState, encoded
from copter_serve.service.delta import MOST_DEADLINES, MOST_ENTRIES, MOST_JOBS, Delta, require_few
from copter_serve.service.fields import parse_json
from copter_serve.service.job_record import MOST_SIZES
from copter_serve.service.problems import Problem
from copter_serve.service.stepwise_json import DEEPEST, PAUSE_ENTRIES, Parser, parse_in_steps

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def ended(steps: Generator[None, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(VALUES, st.sampled_from([None, 1, "\t"]))
@settings(max_examples=200, deadline=None)
def test_steps_give_what_json_gives(value: Any, indent: Any) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    if depth(value) > DEEPEST:
        with pytest.raises(Problem, match="nested too deep"):
            ended(parse_in_steps(body))
        return
    assert ended(parse_in_steps(body)) == parse_json(body)


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \\u\n', max_size=30))
@settings(max_examples=400, deadline=None)
def test_steps_refuse_what_json_refuses(text: str) -> None:
    def outcome(parse: Any) -> Any:
        try:
            return parse(text.encode())
        except Problem as problem:
            return f"problem {problem.status}"

    assert outcome(lambda body: ended(parse_in_steps(body))) == outcome(parse_json)


@pytest.mark.parametrize("body", [b"\xff", b"[1,]", b'{"a":1,}', b"[1", b'{"a"', b"[NaN]", b"", b"[1] 2", b'{"a" 1}'])
def test_broken_documents_are_problems(body: bytes) -> None:
    for parse in (parse_json, lambda each: ended(parse_in_steps(each))):
        with pytest.raises(Problem) as found:
            parse(body)
        assert found.value.status == 400


def test_there_is_a_pause_every_few_entries_however_deep() -> None:
    document = {"add_jobs": [{"id": "j", "throughputs": {"a": {str(k): 1.0 for k in range(20_000)}}}]}
    parser = Parser(json.dumps(document))
    steps, before, longest = parser.document(), 0, 0
    for _ in steps:
        longest, before = max(longest, parser.entries - before), parser.entries
    assert longest <= PAUSE_ENTRIES
    assert parser.entries > 20_000


def table(sizes: int, first: int = 1) -> dict[str, dict[str, float]]:
    return {"a": {str(k): 1.0 for k in range(first, first + sizes)}}


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"add_jobs": [{"id": "j", "throughputs": table(150_000)}]}, "/add_jobs/0/throughputs"),
        ({"add_jobs": [{"id": "j", "throughputs": {f"t{k}": 1.0 for k in range(20_000)}}]}, "/add_jobs/0/throughputs"),
        ({"add_jobs": [{"id": f"j{k}", "throughputs": table(9_000)} for k in range(12)]}, "/add_jobs"),
        ({"add_jobs": [{"id": "j", "deadlines": [[1.0, 1.0]] * (MOST_DEADLINES + 1)}]}, "/add_jobs/0/deadlines"),
        ({"throughputs": {"j/1": table(150_000)}}, "/throughputs/j~11"),
        ({"remove_jobs": [f"x{k}" for k in range(300_000)]}, "/remove_jobs"),
        ({"add_nodes": {"a": [f"x{k}" for k in range(MOST_ENTRIES + 1)]}}, "/add_nodes"),
        ({"pins": dict.fromkeys(map(str, range(MOST_ENTRIES + 1)))}, "/pins"),
        ({"add_jobs": [{"id": f"j{k}"} for k in range(MOST_JOBS + 1)]}, "/add_jobs"),
        ({"throughputs": {f"j{k}": table(1) for k in range(MOST_JOBS + 1)}}, "/throughputs"),
    ],
)
def test_too_much_is_refused_before_it_is_read(document: dict[str, Any], where: str) -> None:
    with pytest.raises(Problem) as found:
        ended(require_few(document))
    assert (found.value.status, found.value.where) == (422, where)


def test_names_that_nobody_knows_are_read_in_steps() -> None:
    steps = Delta.reading({"remove_jobs": [f"x{k}" for k in range(MOST_ENTRIES)]})
    assert sum(1 for _ in steps) >= 40


def test_many_jobs_are_counted_and_checked_in_steps_and_added_alike() -> None:
    document = {
        "add_jobs": [
            {"id": f"j{k}", "throughputs": table(1)} | ({"submit_s": float(k)} if k % 2 else {}) for k in range(9_000)
        ]
    }
    states = [ClusterState(ClusterRecord.read({"types": {"a": {"nodes": 1, "gpus_per_node": 8}}})) for _ in range(2)]
    assert sum(1 for _ in require_few(document)) >= 4
    deltas = [Delta.read(document), Delta.read(document)]
    assert sum(1 for _ in states[0].checking(deltas[0], 7.0)) >= 40
    changes = [state.resolve(delta, 7.0) for state, delta in zip(states, deltas, strict=True)]
    assert changes[0] == changes[1]
    texts = deltas[0].texts
    assert parse_json(encoded(changes[0], texts)) == parse_json(encoded(changes[1], {})) == changes[0]
    assert len(texts) == 9_000
    one = states[0].resolve(Delta.read({"remove_jobs": []}), 7.0)
    assert parse_json(encoded(one, {})) == one
    for state, change, delta in zip(states, changes, deltas, strict=True):
        state.apply(change, delta)
    assert states[0].jobs == states[1].jobs
    wrong = Delta.read({"add_jobs": [{"id": "j", "throughputs": {"b": {"1": 1.0}}}]})
    with pytest.raises(Problem, match="no GPU type 'b'"):
        ended(states[0].checking(wrong, 7.0))


def test_measured_throughputs_do_not_make_a_job_grow_without_end() -> None:
    state = ClusterState(ClusterRecord.read({"types": {"a": {"nodes": 1, "gpus_per_node": 8}}}))

    def take(document: dict[str, Any]) -> None:
        ended(require_few(document))
        delta = Delta.read(document)
        state.apply(state.resolve(delta, 0.0), delta)

    take({"add_jobs": [{"id": "j", "throughputs": table(8)}]})
    take({"throughputs": {"j": table(MOST_SIZES)}})  # the first eight among them
    take({"throughputs": {"j": table(MOST_SIZES)}})
    with pytest.raises(Problem, match=r"10,001 throughputs, a job may have 10,000") as found:
        take({"throughputs": {"j": table(1, MOST_SIZES + 1)}})
    assert found.value.where == "/throughputs/j"
    assert len(state.jobs["j"].throughputs["a"]) == MOST_SIZES
