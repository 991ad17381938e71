"""What-if: the grammar, a saved run's round and hours, a tape, a simulation; nothing is changed by asking."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from copter import CopterError, Model, Session
from copter.storage.tape import recorded
from copter_frontends import cli
from copter_frontends.replay.what_if.change import AddedJob, Change, WhatIfError
from copter_frontends.replay.what_if.round import change_between, values_of
from copter_frontends.replay.what_if.run import ask_hours, ask_run
from copter_frontends.replay.what_if.tape import ask_tape
from copter_frontends.simulator import load_run
from copter_frontends.simulator.paired import Paired, bootstrap

BUSY = ("--cluster", "sia-het", "--jobs", "600", "--quota", "vision=8", "--warmup-rounds", "300", "--rounds", "2")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whatif")
    with pytest.raises(SystemExit):
        cli.main(["simulate", "sia", *BUSY, "--save", str(folder / "run.bin"), "--json", "-q"])
    return folder / "run.bin"


def test_the_grammar() -> None:
    found = Change.read("add 8 a100,remove 4 t4, quota ml 16, add job probe 4 bert, remove job old")
    assert found.gpus == {"a100": 8, "t4": -4}
    assert (found.quotas, found.added, found.removed) == ({"ml": 16}, (AddedJob("probe", 4, "bert"),), ("old",))
    assert Change.read("add job probe 4").added == (AddedJob("probe", 4, None),)


@pytest.mark.parametrize(
    "text", ["", "add", "add 8", "add eight a100", "add 0 a100", "add -1 a100", "add 1e3 a100", "quota ml -1",
             "add 8 a100, remove 8 a100", "add 8 a100,", "add 99999999 a100", "remove job", "add job x", "add ² a100"],
)  # fmt: skip
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(WhatIfError, match="what-if: "):
        Change.read(text)


def test_the_change_of_an_optimum_lies_between_its_ends() -> None:
    assert change_between((10.0, 11.0), (14.0, 14.5)) == (3.0, 4.5)
    assert change_between((11.0, 10.0), (14.5, 14.0)) == (3.0, 4.5)  # minimised: bounds lie below
    assert change_between((10.0, np.inf), (14.0, 14.5)) is None
    assert change_between(None, (14.0, 14.5)) is None


def test_a_question_leaves_the_run_bit_identical(saved: Path) -> None:
    asked = load_run(saved)
    asked.tell_policy()
    before = values_of(asked.policy)
    content = saved.read_bytes()
    answer = ask_run(Change.read("add 8 a100"), str(saved))
    assert saved.read_bytes() == content
    assert values_of(asked.policy) == before
    # The round that was not changed is the one that the run would have planned by itself.
    plan = asked.policy.plan(asked.now_s, asked.deadline_s)
    assert plan.objective == answer.objective[0]
    assert answer.lp_change is not None
    assert answer.plan_change is not None
    assert 0 < answer.lp_change[0] <= answer.lp_change[1]
    change = answer.objective[1] - answer.objective[0]
    assert answer.plan_change[0] - 1e-9 <= change <= answer.plan_change[1] + 1e-9


def test_questions_about_the_live_policy_leave_it_alone(saved: Path) -> None:
    from copter_frontends.replay.what_if.round import ask

    simulation = load_run(saved)
    simulation.tell_policy()
    before = values_of(simulation.policy)
    change = Change.read("remove 8 a100, quota vision 16, add job probe 4")
    answer = ask(
        change.text, simulation.policy, lambda policy: change.tell(policy, simulation.cluster, simulation.active),
        simulation.now_s, simulation.deadline_s, (5, 6),
    )  # fmt: skip
    assert values_of(simulation.policy) == before
    assert "probe" in answer.starts
    with pytest.raises(CopterError):
        ask("", simulation.policy, lambda policy: policy.remove_job("nobody"), simulation.now_s, 60.0, (5, 4))
    assert values_of(simulation.policy) == before


def test_fewer_gpus_for_hours_take_longer(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "explain", str(saved), "--what-if", "remove 8 a100", "--hours", "2", "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["jobs"]["jobs"] > 10
    assert told["jobs"]["mean_difference_h"] > 0
    assert told["lp_change"][1] < 0
    same = ask_hours(Change.read("quota vision 8"), str(saved), 0.2)  # as it is already
    assert np.array_equal(same.before, same.after)


@pytest.mark.parametrize(
    ("text", "hours", "told"),
    [
        ("add 3 a100", None, "whole nodes"),
        ("remove 80 a100", None, "the cluster has 16"),
        ("add 8 h100", None, "unknown GPU type 'h100'"),
        ("quota other 4", None, "has no quota to change"),
        ("remove job nobody", None, "nobody"),
        ("add job probe 4", 1.0, "takes no change of jobs"),
        ("what", None, "is not one of: add N TYPE"),
    ],
)
def test_what_does_not_go_is_one_line(
    saved: Path, capsys: pytest.CaptureFixture[str], text: str, hours: float | None, told: str
) -> None:
    more = () if hours is None else ("--hours", str(hours))
    code, out, err = run(capsys, "explain", str(saved), "--what-if", text, *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


def tape_of(path: Path, capacities: tuple[float, ...] = (4.0, 6.0, 5.0)) -> list[Callable[[float], float]]:
    """A tape of rounds with ten requests of worths 1 to 10, one unit each; what each round is worth by capacity."""
    model = Model(sense="max")
    model.add_resources("gpu", capacities[0])
    template = model.add_template({"gpu": [1.0]})
    for k in range(10):
        model.add_request(k, [k + 1.0], template=template)
    session = Session(model)
    with recorded(str(path)):
        for count in capacities:
            model.set_count("gpu", count)
            session.solve()
    return [lambda gpus: sum(sorted(range(1, 11))[10 - int(gpus) :]) for _ in capacities]


def test_a_tape_with_other_capacity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rounds.tape"
    worth = tape_of(path)[0]
    found = ask_tape(Change.read("add 2 gpu"), str(path))
    assert [each["before"] for each in found.rounds] == pytest.approx([worth(4), worth(6), worth(5)])
    assert [each["after"] for each in found.rounds] == pytest.approx([worth(6), worth(8), worth(7)])
    assert found.total is not None
    exact = sum(worth(n + 2) - worth(n) for n in (4, 6, 5))
    assert found.total[0] - 1e-6 <= exact <= found.total[1] + 1e-6
    code, out, _ = run(capsys, "explain", str(path), "--what-if", "remove 1 gpu")
    assert code == 0
    assert "3 rounds, together" in out
    assert "for JCT take" in out
    for more, told in ((("remove 9 gpu",), "only 4 gpu"), (("add 1 h100",), "there are gpu"),
                       (("add 1 gpu", "--hours", "1"), "--hours")):  # fmt: skip
        code, out, err = run(capsys, "explain", str(path), "--what-if", *more)
        assert (code, out) == (2, "")
        assert told in err


def test_a_simulation_with_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("simulate", "sia", "--cluster", "sia-het", "--jobs", "400", "--hours", "3")
    code, out, _ = run(capsys, *asked, "--json")
    alone = json.loads(out)
    code, out, _ = run(capsys, *asked, "--json", "--what-if", "remove 8 a100, add job probe 4 bert")
    told = json.loads(out)
    assert code == 0
    for name in ("avg_jct_h", "jobs_completed", "utilisation", "jobs_submitted"):
        assert told["before"][name] == alone[name]
    assert told["after"]["jobs_submitted"] == alone["jobs_submitted"] + 1
    assert told["after"]["gpus"] == alone["gpus"] - 8
    assert told["jobs"]["jobs"] + told["jobs"]["only_before"] == alone["jobs_completed"]
    code, out, err = run(capsys, *asked, "--what-if", "quota ml 4")
    assert (code, out) == (2, "")
    assert "has no quota to change" in err


def test_pairs_of_jobs() -> None:
    paired = Paired.of({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 0.5, "b": 2.0, "d": 1.0})
    told = paired.as_dict()
    assert (paired.names, told["only_before"], told["only_after"]) == (["a", "b"], 1, 1)
    assert (told["mean_difference_h"], told["faster"], told["slower"]) == (-0.25, 1, 0)
    assert paired.extremes(3) == [("a", 1.0, 0.5)]
    assert Paired.of({}, {}).as_dict()["avg_jct_h"] is None
    assert "no job completed in both" in Paired.of({}, {}).as_text()


def test_the_bootstrap_interval_holds_the_mean_of_most_samples() -> None:
    rng = np.random.default_rng(7)
    inside = 0
    for seed in range(30):
        low, high = bootstrap(rng.normal(3.0, 1.0, 40), seed) or (0.0, 0.0)
        inside += low <= 3.0 <= high
    assert inside >= 25
    assert bootstrap([1.0]) is None
