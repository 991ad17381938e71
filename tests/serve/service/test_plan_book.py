"""The plan in force: always feasible, its changes add up to it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.plan_book import PlanBook, fragment, plan_document, read_plan
from copter_serve.service.store import Frozen

JOBS = ["a", "b", "c"]


def fresh() -> ClusterState:
    state = ClusterState(ClusterRecord.read({"types": {"t4": {"nodes": 4, "gpus_per_node": 4}}}))
    state.apply(state.resolve(Delta.read({"add_jobs": [{"id": job} for job in JOBS]}), 0.0))
    return state


def given_on(node: str) -> dict[str, Any]:
    return {"gpu_type": "t4", "gpus": 1, "nodes": {node: 1}}


def plan(version: int, given_now: dict[str, Any], stop: list[str]) -> dict[str, Any]:
    return {"header": {"version": version, "sequence": 1}, "set": given_now, "stop": stop}


def test_what_has_gone_meanwhile_is_left_out() -> None:
    state, book = fresh(), PlanBook()
    state.apply(state.resolve(Delta.read({"remove_jobs": ["a"], "remove_nodes": ["t4-1"]}), 0.0))
    book.take(plan(1, {"a": given_on("t4-0"), "b": given_on("t4-1"), "c": given_on("t4-2")}, []), state)
    assert json.loads(book.body())["allocations"] == {"c": given_on("t4-2")}


def test_deltas_trim_the_plan_at_once() -> None:
    state, book = fresh(), PlanBook()
    book.take(plan(1, {"a": given_on("t4-0"), "b": given_on("t4-1"), "c": given_on("t4-2")}, []), state)
    before = book.etag
    change = state.resolve(Delta.read({"remove_jobs": ["a"], "remove_nodes": ["t4-1"]}), 0.0)
    state.apply(change)
    book.follow(change)
    assert set(json.loads(book.body())["allocations"]) == {"c"}
    assert book.etag != before


def test_a_job_or_node_that_came_back_under_its_name_has_lost_its_gpus() -> None:
    """Deltas that wait for the disk are in the state already: it has the new job and the new node."""
    state, book = fresh(), PlanBook()
    book.take(plan(1, {"a": given_on("t4-0"), "b": given_on("t4-1"), "c": given_on("t4-2")}, []), state)
    changes = []
    for told in (
        {"remove_jobs": ["a"], "remove_nodes": ["t4-1"]},
        {"add_jobs": [{"id": "a"}], "add_nodes": {"t4": ["t4-1"]}},
    ):
        changes.append(state.resolve(Delta.read(told), 0.0))
        state.apply(changes[-1])
    frozen = Frozen.of(state, book, 0.0, changes)
    assert set(frozen.allocations) == {"c"}
    assert set(book.allocations) == {"a", "b", "c"}
    for change in changes:
        book.follow(change)
    assert set(book.allocations) == {"c"}


def test_a_delta_that_touches_no_running_job_leaves_the_plan() -> None:
    state, book = fresh(), PlanBook()
    book.take(plan(1, {"a": given_on("t4-0")}, []), state)
    before = book.etag
    change = state.resolve(Delta.read({"remove_jobs": ["b"], "remove_nodes": ["t4-3"], "add_jobs": [{"id": "d"}]}), 0.0)
    state.apply(change)
    book.follow(change)
    assert book.etag == before


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(JOBS), st.integers(0, 3).map(lambda k: f"t4-{k}"), max_size=3),
            st.lists(st.sampled_from(JOBS), max_size=2, unique=True),
        ),
        max_size=20,
    ),
    st.integers(0, 20),
)
def test_changes_add_up_to_the_plan(plans: list[tuple[dict[str, str], list[str]]], since: int) -> None:
    state, book = fresh(), PlanBook()
    copy: dict[str, Any] = {}
    edition = book.edition
    for version, (nodes, stop) in enumerate(plans, 1):
        stopped = [job for job in stop if job not in nodes]
        book.take(plan(version, {job: given_on(node) for job, node in nodes.items()}, stopped), state)
        if version == since:
            copy, edition = dict(book.allocations), book.edition
    changes = book.changes_since(edition)
    if since > len(plans):
        copy = {}
    assert changes is not None
    for after, body in changes:
        told = json.loads(body)
        assert told["edition"] == after
        copy.update(told["set"])
        for job in told["stop"]:
            del copy[job]
    assert copy == book.allocations == json.loads(book.body())["allocations"]
    assert book.changes_since(-5) is None


def test_a_plan_crosses_with_its_pieces() -> None:
    """Ids may hold all that separates pieces; a plan that sets nothing has none."""
    names = ["a", 'b",\n"c', "ü\u2028}}", "{"]
    sent = plan(3, {name: given_on("t4-1") for name in names}, ["x"])
    told, pieces = read_plan(plan_document(sent))
    assert told == sent == json.loads(plan_document(sent))
    assert pieces == [fragment(name, given_on("t4-1")) for name in names]
    empty = plan(4, {}, [])
    assert read_plan(plan_document(empty)) == (empty, [])


def test_pieces_are_taken_as_if_they_were_made_here() -> None:
    sent = plan(1, {"a": given_on("t4-0"), "b": given_on("t4-9"), "c": given_on("t4-2")}, [])
    state, one, other = fresh(), PlanBook(), PlanBook()
    one.take(sent, state)
    told, pieces = read_plan(plan_document(sent))
    other.take(told, state, pieces)
    assert json.loads(one.body()) == json.loads(other.body())
    assert set(one.allocations) == {"a", "c"}  # there is no node t4-9
    assert one.changes_since(0) == other.changes_since(0)
