"""The scheduler's side: every policy by deltas, and what jobs hold over a restart."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import pytest
from served import TYPES

from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.plan_book import PlanBook
from copter_serve.service.policy_names import NEEDS_WORK, POLICY_NAMES, RATED
from copter_serve.service.problems import Problem
from copter_serve.service.scheduler import Scheduler


class Both:
    """A state and a scheduler that is told of its deltas as the service tells it."""

    def __init__(self, policy: str) -> None:
        self.record = ClusterRecord.read({"types": TYPES, "policy": policy})
        self.state, self.book = ClusterState(self.record), PlanBook()
        self.scheduler = Scheduler(ClusterState(self.record), {}, 0)
        self.now_s = 1.0

    def do(self, document: dict[str, Any]) -> None:
        change = self.state.resolve(Delta.read(document), self.now_s)
        self.state.apply(change)
        self.book.follow(change)
        self.scheduler.take(json.loads(json.dumps(change)))

    def plan(self, now_s: float) -> dict[str, Any]:
        plan = self.scheduler.plan(now_s)
        self.book.take(json.loads(json.dumps(plan)), self.state)
        self.check()
        return plan["header"]  # type: ignore[no-any-return]

    def check(self) -> None:
        """The plan in force fits the nodes."""
        used: dict[str, int] = {}
        for given in self.book.allocations.values():
            for node, gpus in given["nodes"].items():
                used[node] = used.get(node, 0) + gpus
        for node, gpus in used.items():
            assert gpus <= self.state.node_gpus[self.state.type_of_node[node]]

    def restarted(self, now_s: float = 0.0) -> Scheduler:
        """Another scheduler from the state and the plan, as after a crash."""
        state = ClusterState(self.record)
        state.jobs, state.pins = dict(self.state.jobs), dict(self.state.pins)
        state.nodes = {kind: dict(nodes) for kind, nodes in self.state.nodes.items()}
        state.type_of_node, state.sequence = dict(self.state.type_of_node), self.state.sequence
        return Scheduler(state, dict(self.book.allocations), self.book.version, deepcopy(self.book.attained), now_s)


def job(policy: str, name: str, gpus: int = 4) -> dict[str, Any]:
    found: dict[str, Any] = {"id": name, "requested_gpus": gpus}
    if policy in RATED:
        found["throughputs"] = {"a100": {str(gpus): 5.0}, "t4": {str(gpus): 1.0}}
    else:
        found["application"] = "bert"
    if policy in NEEDS_WORK:
        found["work"] = 1000.0
    return found


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_every_policy_plans_and_goes_on_after_a_restart(policy: str) -> None:
    both = Both(policy)
    assert both.plan(0.0)["running"] == 0
    both.do({"add_jobs": [job(policy, name) for name in "abc"]})
    header = both.plan(60.0)
    assert (header["running"], header["sequence"], header["version"]) == (3, 1, 2)
    both.do({"change_jobs": [{"id": "a", "progress": 0.5, "weight": 2}], "remove_jobs": ["b"]})
    both.do({"set_capacity": {"t4": 0}, "add_nodes": {"a100": ["spare"]}})
    header = both.plan(120.0)
    assert {given["gpu_type"] for given in both.book.allocations.values()} == {"a100"}
    assert header["capacity"] == {"a100": 24, "t4": 0}
    held = dict(both.book.allocations)
    again = both.restarted().plan(180.0)
    assert again["header"]["version"] == header["version"] + 1
    if policy not in ("sia", "hadar", "hops", "pollux"):  # those may resize a job by its progress and its age
        assert again["set"] == {}
        assert again["stop"] == []
    assert held.keys() == (held | again["set"]).keys() - set(again["stop"])


@pytest.mark.parametrize("policy", ["allocation", "sia", "hadar", "hops"])
def test_policies_with_a_program_explain(policy: str) -> None:
    both = Both(policy)
    with pytest.raises(LookupError):
        both.scheduler.explain("a")
    both.do({"add_jobs": [job(policy, "a"), job(policy, "b")]})
    both.plan(0.0)
    if policy == "hops":  # its requests are groups of jobs
        return
    told = both.scheduler.explain("a")
    json.dumps(told)
    assert told["options"]


def test_policies_without_a_program_say_so() -> None:
    both = Both("fifo")
    both.do({"add_jobs": [job("fifo", "a")]})
    both.plan(0.0)
    with pytest.raises(LookupError, match="no linear program"):
        both.scheduler.explain("a")


def test_measured_speeds_reach_policies_that_ask_for_them() -> None:
    both = Both("gavel")
    both.do({"add_jobs": [job("gavel", "a"), job("gavel", "b", 8), job("gavel", "c", 8)]})
    both.plan(0.0)
    both.do({"throughputs": {"a": {"a100": {"4": 0.0}}}})
    both.do({"remove_jobs": ["c"]})
    both.plan(4000.0)
    assert both.book.allocations["a"]["gpu_type"] == "t4"


def test_what_a_policy_refuses_is_skipped_until_it_can_run() -> None:
    both = Both("fifo")
    both.do({"add_jobs": [job("fifo", "huge", 64)]})
    assert "huge" in both.plan(0.0)["skipped"]
    with pytest.raises(LookupError, match="takes no part"):
        both.scheduler.explain("huge")
    both.do({"change_jobs": [{"id": "huge", "progress": 0.1}], "pins": {}})
    both.do({"set_capacity": {"a100": 64}})
    assert both.plan(1.0)["skipped"] == {}
    both.do({"remove_jobs": ["huge"]})
    assert both.plan(2.0)["running"] == 0


def test_pins_that_a_policy_cannot_keep_are_told() -> None:
    both = Both("allocation")
    both.do({"add_jobs": [job("allocation", "a")]})
    both.do({"pins": {"a": {"gpu_type": "t4", "nodes": {"t4-0": 2}}}})
    assert "none of its options" in both.plan(0.0)["skipped"]["a"]
    both.do({"pins": {"a": {"gpu_type": "t4", "nodes": {"t4-0": 4}}}})
    assert both.plan(1.0)["skipped"] == {}
    assert both.book.allocations["a"]["nodes"] == {"t4-0": 4}
    restarted = both.restarted()
    assert restarted.plan(2.0)["set"] == {}


@pytest.mark.parametrize("policy", ["tiresias", "themis", "fifo", "gavel-max-min-fairness"])
def test_attained_service_goes_on_after_a_restart(policy: str) -> None:
    """The new scheduler's clocks are those of the old one, had it gone on."""
    both = Both(policy)
    for k in range(9):
        both.do({"add_jobs": [{**job(policy, f"j{k}", gpus=8), "work": 1e4}]})
    for step in range(6):
        both.plan(1.0 + 100.0 * step)
    both.now_s = 520.0
    both.do({"remove_jobs": ["j0"], "add_jobs": [{**job(policy, "late", gpus=4), "work": 1e4}]})
    both.plan(600.0)
    new = both.restarted(650.0)
    old = both.scheduler.policy
    old.plan(650.0)  # type: ignore[union-attr]
    assert new.policy.service.keys() == old.service.keys()  # type: ignore[union-attr]
    assert any(had.gpu_s > 0 for had in old.service.values())  # type: ignore[union-attr]
    for job_id, had in new.policy.service.items():  # type: ignore[union-attr]
        kept = old.service[job_id]  # type: ignore[union-attr]
        assert had.executed_s == pytest.approx(kept.executed_s), job_id
        assert had.gpu_s == pytest.approx(kept.gpu_s), job_id
        assert had.waiting_s == pytest.approx(kept.waiting_s), job_id
    if policy.startswith("gavel"):
        for job_id, times in new.policy.mechanism.time_s.items():  # type: ignore[union-attr]
            assert times == pytest.approx(old.mechanism.time_s[job_id]), job_id  # type: ignore[union-attr]


def test_a_job_that_has_had_much_does_not_come_first_again() -> None:
    """Least attained service: after a restart the long one still stands behind the fresh one."""
    both = Both("tiresias")
    both.do({"add_jobs": [{"id": "long", "gpus": 16, "throughputs": {"a100": {"16": 1.0}}}]})
    for step in range(3):
        both.plan(40_000.0 * step)
    both.now_s = 90_000.0
    both.do({"add_jobs": [{"id": "fresh", "gpus": 16, "throughputs": {"a100": {"16": 1.0}}}]})
    assert set(both.restarted(90_001.0).plan(90_002.0)["set"]) == {"fresh"}
    forgot = both.restarted(90_001.0)
    forgot.policy.service["long"].gpu_s = 0.0  # type: ignore[union-attr]
    assert "fresh" not in forgot.plan(90_002.0)["set"]


def test_a_job_that_returns_to_its_gpus_is_named_again() -> None:
    """The plan in force has dropped it meanwhile, though it looks to the scheduler as if nothing had changed."""
    both = Both("fifo")
    both.do({"add_jobs": [job("fifo", "a")]})
    both.plan(0.0)
    assert "a" in both.book.allocations
    both.do({"remove_jobs": ["a"]})
    both.do({"add_jobs": [job("fifo", "a")]})
    assert "a" not in both.book.allocations
    both.plan(60.0)
    assert "a" in both.book.allocations
    both.check()


def breaking(both: Both, monkeypatch: pytest.MonkeyPatch, culprit: str | None) -> None:
    """Make every policy of this scheduler's kind fail while it knows a job, or always."""
    policy = both.scheduler.policy
    plan = type(policy).plan

    def failing(self: Any, *arguments: Any) -> Any:
        if culprit is None or culprit in both.scheduler._known:
            raise ZeroDivisionError("float division by zero")
        return plan(self, *arguments)

    monkeypatch.setattr(type(policy), "plan", failing)


def test_a_job_that_a_policy_fails_with_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both("fifo")
    both.do({"add_jobs": [job("fifo", "a")]})
    both.plan(0.0)
    breaking(both, monkeypatch, "bad")
    both.do({"add_jobs": [job("fifo", "bad")]})
    header = both.plan(1.0)
    assert (header["status"], header["failure"], header["running"]) == ("feasible", None, 1)
    assert "ZeroDivisionError: float division by zero" in header["skipped"]["bad"]
    with pytest.raises(LookupError, match="fails with it"):
        both.scheduler.explain("bad")
    both.do({"add_jobs": [job("fifo", "b")]})
    assert both.plan(2.0)["running"] == 2
    both.do({"change_jobs": [{"id": "bad", "progress": 0.5}]})  # it is offered again, and fails again
    assert both.plan(3.0)["running"] == 2
    both.do({"remove_jobs": ["bad"]})
    assert both.plan(4.0)["skipped"] == {}


def test_where_a_policy_always_fails_the_last_plan_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both("allocation")
    both.do({"add_jobs": [job("allocation", name) for name in "abcdef"]})
    assert both.plan(0.0)["running"] == 6
    breaking(both, monkeypatch, None)
    node = next(iter(both.book.allocations["a"]["nodes"]))
    both.do({"remove_jobs": ["b"], "remove_nodes": [node], "add_jobs": [job("allocation", "new")]})
    pin = {"gpu_type": "t4", "nodes": {"t4-0": 4}}
    both.do({"pins": {"new": pin}})
    left = {name for name, given in both.book.allocations.items() if "t4-0" not in given["nodes"]}
    assert left <= set("cdef")  # whose plans did not need the node that is gone
    header = both.plan(1.0)
    assert (header["status"], header["failure"]) == ("kept_previous", "ZeroDivisionError: float division by zero")
    assert both.book.allocations["new"] == {"gpu_type": "t4", "gpus": 4, "nodes": {"t4-0": 4}}
    assert both.book.allocations.keys() == {"new"} | left
    monkeypatch.undo()
    header = both.plan(2.0)
    assert (header["failure"], header["running"]) == (None, 6)


def test_an_edit_that_a_policy_fails_with_makes_it_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both("gavel")
    both.do({"add_jobs": [job("gavel", "a")]})
    both.plan(0.0)
    first = both.scheduler.policy

    def failing(*_: Any) -> None:
        raise KeyError("a")

    monkeypatch.setattr(type(first), "remove_job", failing)
    both.do({"remove_jobs": ["a"], "add_jobs": [job("gavel", "b")]})
    header = both.plan(1.0)
    assert (header["failure"], header["running"], header["jobs"]) == (None, 1, 1)
    assert both.scheduler.policy is not first


def test_chronus_promises_deadlines_and_quotes_them() -> None:
    both = Both("chronus")
    both.do({"add_jobs": [{**job("chronus", "soon"), "deadlines": [[7200.0, 100.0], [9000.0, 50.0]]}]})
    both.do({"add_jobs": [job("chronus", "free"), {**job("chronus", "never"), "deadlines": [[61.0, 10.0]]}]})
    both.plan(60.0)
    told = both.scheduler.explain("soon")
    json.dumps(told)
    assert told["standing"] == "guaranteed"
    assert told["promised_by_s"] == 7201.0
    assert told["leases"]
    assert any("could end by" in each for each in told["quotes"])
    assert both.scheduler.explain("free")["standing"] == "best effort"
    assert both.scheduler.explain("free")["quotes"]
    assert both.scheduler.explain("never")["promised_by_s"] is None
    again = both.restarted(120.0)
    again.plan(120.0)
    assert again.explain("soon")["standing"] == "guaranteed"
    with pytest.raises(LookupError, match="not known"):
        both.scheduler.explain("stranger")


def test_a_quote_of_a_job_that_is_not_there_commits_nothing() -> None:
    both, new = Both("chronus"), {**job("chronus", "new"), "deadlines": [[7200.0, 100.0]]}
    both.do({"add_jobs": [job("chronus", "old")]})
    before = both.plan(60.0)
    told = both.scheduler.quote(new, 61.0)
    json.dumps(told)
    assert (told["standing"], told["promised_by_s"]) == ("guaranteed", 7261.0)
    assert any("could end by" in each for each in told["quotes"])
    assert "new" not in both.scheduler.state.jobs
    assert not both.scheduler.policy.book.records  # type: ignore[union-attr]
    assert both.scheduler.quote({**new, "deadlines": [[61.0, 10.0]]}, 61.0)["promised_by_s"] is None
    after = both.plan(120.0)
    assert (after["jobs"], after["running"]) == (before["jobs"], before["running"])
    with pytest.raises(Problem, match="old"):
        both.scheduler.quote(job("chronus", "old"), 61.0)
    with pytest.raises(Problem, match="refuses"):
        both.scheduler.quote(job("chronus", "large", 4096), 61.0)
    other = Both("fifo")
    other.plan(1.0)
    with pytest.raises(LookupError, match="promises no deadlines"):
        other.scheduler.quote(job("fifo", "a"), 61.0)


@pytest.mark.parametrize(
    ("deadlines", "words"),
    [
        ([[60.0]], "give .seconds from submission, reward"),
        ([[60.0, 10.0], [30.0, 5.0]], "ascending"),
        ([[60.0, 5.0], [90.0, 10.0]], "may only fall"),
        ([[0.0, 10.0]], "deadlines/0/0"),
        ("soon", "deadlines"),
    ],
)
def test_deadlines_that_cannot_be_are_told(deadlines: Any, words: str) -> None:
    both = Both("chronus")
    with pytest.raises(Problem) as told:
        both.do({"add_jobs": [{**job("chronus", "a"), "deadlines": deadlines}]})
    assert re.search(words, str(told.value.document()))
    assert not both.state.jobs


def test_a_policy_without_promises_takes_no_deadlines() -> None:
    with pytest.raises(Problem, match="promises no deadlines"):
        Both("fifo").do({"add_jobs": [{**job("fifo", "a"), "deadlines": [[60.0, 10.0]]}]})
