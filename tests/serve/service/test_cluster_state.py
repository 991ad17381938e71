"""Deltas: read, checked whole, done and taken back whole, done again from the journal to the same state."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import REMEMBERED, Accepted, ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.fields import parse_json
from copter_serve.service.job_record import JobRecord
from copter_serve.service.problems import Problem

TYPES = {"a100": {"nodes": 2, "gpus_per_node": 8}, "t4": {"nodes": 2, "gpus_per_node": 4}}


def fresh(policy: str = "allocation") -> ClusterState:
    return ClusterState(ClusterRecord.read({"types": TYPES, "policy": policy}))


def held(state: ClusterState) -> Any:
    """All that a state holds; nodes in their order."""
    return copy.deepcopy(
        (
            state.sequence,
            dict(sorted(state.jobs.items())),
            dict(sorted(state.pins.items())),
            {kind: list(nodes) for kind, nodes in state.nodes.items()},
            dict(sorted(state.type_of_node.items())),
            state.next_index,
            list(state.accepted.items()),
        )
    )


def do(state: ClusterState, document: dict[str, Any]) -> dict[str, Any]:
    change = state.resolve(Delta.read(document), 5.0)
    state.apply(change)
    return change


# Known answers ----------------------------------------------------------------------------------------------------


def test_a_delta_of_everything() -> None:
    state = fresh()
    do(state, {"add_jobs": [{"id": "old"}, {"id": "kept", "throughputs": {"a100": {"8": 3.0}}}]})
    do(
        state,
        {
            "id": "mine",
            "remove_jobs": ["old"],
            "add_jobs": [{"id": "new", "throughputs": {"t4": 2.5}, "requested_gpus": 4}],
            "change_jobs": [{"id": "kept", "weight": 3, "progress": 0.5, "restarts": 2}],
            "throughputs": {"kept": {"a100": {"4": 2.0}, "t4": {"4": 0}}},
            "set_capacity": {"t4": 12},
            "add_nodes": {"a100": ["spare"]},
            "remove_nodes": [],
            "pins": {"kept": {"gpu_type": "a100", "nodes": {"spare": 8}}},
        },
    )
    assert sorted(state.jobs) == ["kept", "new"]
    kept = state.jobs["kept"]
    assert (kept.weight, kept.progress, kept.restarts) == (3.0, 0.5, 2)
    assert kept.throughputs == {"a100": {8: 3.0, 4: 2.0}, "t4": {4: 0.0}}
    assert state.jobs["new"].throughputs == {"t4": {4: 2.5}}
    assert state.jobs["new"].submit_s == 5.0
    assert state.capacity() == {"a100": 24, "t4": 12}
    assert list(state.nodes["t4"]) == ["t4-0", "t4-1", "t4-2"]
    assert state.pins == {"kept": ("a100", (("spare", 8),))}
    assert (state.sequence, state.accepted["mine"].sequence) == (2, 2)


def test_capacity_goes_from_the_newest_nodes_without_a_pin() -> None:
    state = fresh()
    do(state, {"add_jobs": [{"id": "j"}], "pins": {"j": {"gpu_type": "a100", "nodes": {"a100-1": 1}}}})
    do(state, {"set_capacity": {"a100": 8, "t4": 0}})
    assert list(state.nodes["a100"]) == ["a100-1"]
    assert state.capacity() == {"a100": 8, "t4": 0}
    with pytest.raises(Problem, match="pinned") as caught:
        do(state, {"set_capacity": {"a100": 0}})
    assert caught.value.status == 409


def test_nodes_that_are_made_up_take_no_name_twice() -> None:
    state = fresh()
    do(state, {"add_nodes": {"t4": ["t4-7"]}})
    do(state, {"set_capacity": {"t4": 20}, "add_nodes": {}})
    assert list(state.nodes["t4"]) == ["t4-0", "t4-1", "t4-7", "t4-8", "t4-9"]
    do(state, {"set_capacity": {"t4": 0}})
    do(state, {"set_capacity": {"t4": 4}})
    assert list(state.nodes["t4"]) == ["t4-10"]


def test_a_job_is_replaced_in_one_delta() -> None:
    state = fresh()
    do(state, {"add_jobs": [{"id": "j", "weight": 1}]})
    do(state, {"remove_jobs": ["j"], "add_jobs": [{"id": "j", "weight": 2}]})
    assert state.jobs["j"].weight == 2.0


def test_ids_of_deltas_are_forgotten_in_order() -> None:
    state = fresh()
    state.accepted.update((f"d{k}", Accepted(k, None)) for k in range(REMEMBERED))
    change = state.resolve(Delta.read({"id": "last"}), 0.0)
    undo = state.apply(change)
    assert "d0" not in state.accepted
    assert "last" in state.accepted
    for step in undo:
        step()
    assert next(iter(state.accepted)) == "d0"
    assert "last" not in state.accepted


def test_the_cluster_of_a_state_has_its_nodes() -> None:
    state = fresh()
    do(state, {"set_capacity": {"a100": 0}, "add_nodes": {"t4": ["x"]}})
    cluster = state.cluster()
    assert {name: cluster.capacity(name) for name in cluster.types} == {"a100": 0, "t4": 12}
    assert "x" in cluster.nodes


# Bad deltas -------------------------------------------------------------------------------------------------------

BAD: list[tuple[Any, int, str]] = [
    ([], 422, "must be an object"),
    ({"jobs": []}, 422, "/jobs: is not known"),
    ({"add_jobs": {}}, 422, "must be an array"),
    ({"add_jobs": [{}]}, 422, "/add_jobs/0/id: is missing"),
    ({"add_jobs": [{"id": ""}]}, 422, "printable"),
    ({"add_jobs": [{"id": "a\nb"}]}, 422, "printable"),
    ({"add_jobs": [{"id": "\ud800"}]}, 422, "printable"),
    ({"add_jobs": [{"id": "x" * 254}]}, 422, "253"),
    ({"add_jobs": [{"id": 7}]}, 422, "must be a text"),
    ({"add_jobs": [{"id": "n"}, {"id": "n"}]}, 422, "there twice"),
    ({"add_jobs": [{"id": "there"}]}, 409, "there already"),
    ({"add_jobs": [{"id": "n", "weight": 0}]}, 422, "above 0"),
    ({"add_jobs": [{"id": "n", "weight": True}]}, 422, "must be a number"),
    ({"add_jobs": [{"id": "n", "weight": 10**400}]}, 422, "range"),
    ({"add_jobs": [{"id": "n", "min_gpus": 0}]}, 422, "whole number from 1"),
    ({"add_jobs": [{"id": "n", "min_gpus": 1.5}]}, 422, "whole number"),
    ({"add_jobs": [{"id": "n", "min_gpus": 4, "max_gpus": 2}]}, 422, "below min_gpus"),
    ({"add_jobs": [{"id": "n", "gpus": 4, "max_gpus": 2}]}, 422, "outside"),
    ({"add_jobs": [{"id": "n", "preemptible": 1}]}, 422, "true or false"),
    ({"add_jobs": [{"id": "n", "progress": 1.5}]}, 422, "from 0 to 1"),
    ({"add_jobs": [{"id": "n", "throughputs": {"h900": 1.0}}]}, 422, "no GPU type"),
    ({"add_jobs": [{"id": "n", "throughputs": {"t4": {"x": 1.0}}}]}, 422, "no number of GPUs"),
    ({"add_jobs": [{"id": "n", "throughputs": {"t4": {"0": 1.0}}}]}, 422, "from 1"),
    ({"add_jobs": [{"id": "n", "throughputs": {"t4": {"²": 1.0}}}]}, 422, "no number of GPUs"),
    ({"add_jobs": [{"id": "n", "throughputs": {"t4": {"1": -1.0}}}]}, 422, "at least 0"),
    ({"change_jobs": [{"id": "nobody"}]}, 409, "no job"),
    ({"change_jobs": [{"id": "there", "min_gpus": 2}]}, 422, "is not known"),
    ({"change_jobs": [{"id": "there"}], "remove_jobs": ["there"]}, 409, "no job"),
    ({"remove_jobs": ["nobody"]}, 409, "no job"),
    ({"remove_jobs": ["there", "there"]}, 422, "there twice"),
    ({"throughputs": {"nobody": {"t4": {"1": 1.0}}}}, 409, "no job"),
    ({"throughputs": {"there": {"t4": 1.0}}}, 422, "must be an object"),
    ({"throughputs": {"there": {"h900": {"1": 1.0}}}}, 422, "no GPU type"),
    ({"set_capacity": {"t4": 5}}, 422, "whole nodes"),
    ({"set_capacity": {"t4": -4}}, 422, "from 0"),
    ({"set_capacity": {"t4": 10**9}}, 422, "from 0"),
    ({"set_capacity": {"h900": 8}}, 422, "no GPU type"),
    ({"set_capacity": {"t4": 8}, "remove_nodes": ["t4-0"]}, 422, "nodes of this type"),
    ({"add_nodes": {"t4": ["t4-0"]}}, 409, "there already"),
    ({"add_nodes": {"t4": ["n"], "a100": ["n"]}}, 422, "there twice"),
    ({"add_nodes": {"h900": ["n"]}}, 422, "no GPU type"),
    ({"remove_nodes": ["n"]}, 409, "no node"),
    ({"remove_nodes": ["a100-0"]}, 409, "pinned"),
    ({"pins": {"nobody": None}}, 409, "no job"),
    ({"pins": {"there": {"gpu_type": "t4", "nodes": {}}}}, 422, "is empty"),
    ({"pins": {"there": {"gpu_type": "t4", "nodes": {"a100-0": 1}}}}, 409, "no node"),
    ({"pins": {"there": {"gpu_type": "a100", "nodes": {"a100-0": 8}}}}, 409, "more GPUs"),
    ({"pins": {"there": {"gpu_type": "h900", "nodes": {"a100-0": 8}}}}, 422, "no GPU type"),
    ({"id": ""}, 422, "printable"),
]


@pytest.mark.parametrize(("document", "status", "words"), BAD)
def test_a_bad_delta_changes_nothing(document: Any, status: int, words: str) -> None:
    state = fresh()
    do(state, {"add_jobs": [{"id": "there"}, {"id": "pinned"}]})
    do(state, {"pins": {"pinned": {"gpu_type": "a100", "nodes": {"a100-0": 1}}}})
    before = held(state)
    with pytest.raises(Problem, match=words) as caught:
        do(state, document)
    assert caught.value.status == status
    json.dumps(caught.value.document()).encode()
    assert held(state) == before
    if isinstance(document, dict):  # the same with good parts before it
        with pytest.raises(Problem):
            do(state, {"add_jobs": [{"id": "good"}], "change_jobs": [], **document} | {"id": ""})
        assert held(state) == before


def test_policies_refuse_what_they_do_not_go_by() -> None:
    state = fresh("sia")
    with pytest.raises(Problem, match="no application"):
        do(state, {"add_jobs": [{"id": "j"}]})
    with pytest.raises(Problem, match="models of applications"):
        do(state, {"add_jobs": [{"id": "j", "application": "bert", "throughputs": {"t4": 1.0}}]})
    do(state, {"add_jobs": [{"id": "j", "application": "bert"}]})
    with pytest.raises(Problem, match="takes no throughputs"):
        do(state, {"throughputs": {"j": {"t4": {"1": 1.0}}}})
    with pytest.raises(Problem, match="work: is missing"):
        do(fresh("srtf"), {"add_jobs": [{"id": "j"}]})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "must be an object"),
        ({}, "/types: is missing"),
        ({"types": {}}, "no GPU"),
        ({"types": {"t4": {"nodes": 0, "gpus_per_node": 4}}}, "no GPU"),
        ({"types": {"t4": {"nodes": 1}}}, "gpus_per_node: is missing"),
        ({"types": {"t4": {"nodes": 1, "gpus_per_node": 0}}}, "from 1"),
        ({"types": {"t4": {"nodes": 10**6, "gpus_per_node": 1}}}, "nodes"),
        ({"types": TYPES, "policy": "magic"}, "no policy"),
        ({"types": TYPES, "policy": ["sia"]}, "no policy"),
        ({"types": TYPES, "round_s": 0}, "above 0"),
        ({"types": TYPES, "restart_penalty": 1}, "below 1"),
        ({"types": TYPES, "more": 1}, "not known"),
    ],
)
def test_bad_clusters(document: Any, words: str) -> None:
    with pytest.raises(Problem, match=words):
        ClusterRecord.read(document)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"nul", b"{'a': 1}", b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}', b"1" * 10_000, b'{"a": 1}}', b'"\x00"',
    ],
)  # fmt: skip
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(Problem) as caught:
        parse_json(body)
    assert caught.value.status == 400


def test_numbers_beyond_the_range_are_no_numbers() -> None:
    with pytest.raises(Problem, match="range"):
        do(fresh(), parse_json(b'{"add_jobs": [{"id": "a", "weight": 1e999}]}'))


# Any deltas -------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d"])
NODES = st.sampled_from(["a100-0", "a100-1", "a100-2", "t4-0", "t4-1", "x", "y"])
KINDS = st.sampled_from(["a100", "t4", "h900"])
TABLES = st.dictionaries(
    KINDS, st.dictionaries(st.sampled_from(["1", "4", "8"]), st.floats(0, 100), max_size=3), max_size=2
)
JOBS = st.fixed_dictionaries(
    {"id": NAMES},
    optional={
        "weight": st.floats(0.1, 9),
        "throughputs": TABLES,
        "min_gpus": st.integers(1, 4),
        "preemptible": st.booleans(),
    },
)
PINS = st.none() | st.fixed_dictionaries(
    {"gpu_type": KINDS, "nodes": st.dictionaries(NODES, st.integers(1, 8), min_size=1)}
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "id": NAMES,
        "add_jobs": st.lists(JOBS, max_size=2),
        "change_jobs": st.lists(
            st.fixed_dictionaries({"id": NAMES}, optional={"weight": st.floats(0.1, 9)}), max_size=2
        ),
        "remove_jobs": st.lists(NAMES, max_size=2),
        "throughputs": st.dictionaries(NAMES, TABLES, max_size=2),
        "set_capacity": st.dictionaries(KINDS, st.integers(0, 6).map(lambda k: 4 * k), max_size=1),
        "add_nodes": st.dictionaries(KINDS, st.lists(NODES, max_size=2), max_size=2),
        "remove_nodes": st.lists(NODES, max_size=2),
        "pins": st.dictionaries(NAMES, PINS, max_size=2),
    },
)


@settings(max_examples=120, deadline=None)
@given(st.lists(DELTAS, max_size=12))
def test_done_taken_back_and_done_again(documents: list[dict[str, Any]]) -> None:
    """Every delta is done or refused whole; taken back, the state is as before; replayed, it is the same."""
    state, replayed = fresh(), fresh()
    refused: set[int] = set()
    for document in documents:
        before = held(state)
        if document.get("id") in state.accepted:
            continue  # answered before it comes here
        try:
            change = state.resolve(Delta.read(document), 1.0)
        except Problem as problem:
            refused.add(problem.status)
            assert held(state) == before
            continue
        undo = state.apply(change)
        after = held(state)
        for step in undo:
            step()
        assert held(state) == before
        state.apply(change)
        assert held(state) == after
        replayed.apply(json.loads(json.dumps(change)))
        assert held(replayed) == after
        assert refused <= {409, 422}
        for job in state.jobs.values():
            assert JobRecord.read("", job.document()) == job
