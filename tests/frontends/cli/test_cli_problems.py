"""``copter simulate|compare traffic|shards``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from command_line import run_json

from copter_frontends import cli
from copter_frontends.policies.registry import network_names
from copter_frontends.shards import SEQUENCES
from copter_frontends.shards import make_scheme as make_shard_scheme
from copter_frontends.shards.cluster import ShardCluster
from copter_frontends.traffic import MODELS, OBJECTIVES, STREAMS, make_scheme
from copter_frontends.traffic.errors import DemandError
from copter_frontends.traffic.greedy import Greedy
from copter_frontends.traffic.paths import RULES
from copter_frontends.traffic.workload import TrafficOptions, make_workload

SMALL = ("--network", "random-12", "--rounds", "4", "--threads", "1")
FEW = ("--shards", "64", "--servers", "8", "--rounds", "4", "--threads", "1")


def test_the_names_that_help_knows_are_those_there_are() -> None:
    pytest.importorskip("highspy")
    assert network_names.DEMAND_MODELS == MODELS
    assert tuple(STREAMS) == network_names.TRAFFIC_STREAMS
    assert network_names.TRAFFIC_OBJECTIVES == OBJECTIVES
    assert network_names.PATH_RULES == RULES
    assert network_names.LOAD_SEQUENCES == SEQUENCES
    workload = make_workload(TrafficOptions("random-5", rounds=1))
    for name in (*network_names.TRAFFIC_SCHEMES, "pop-2"):
        make_scheme(name, workload.paths, workload.first)
    for name in (*network_names.SHARD_SCHEMES, "pop-2"):
        make_shard_scheme(name, ShardCluster.round_robin(8, 2))


@pytest.mark.parametrize("stream", network_names.TRAFFIC_STREAMS)
def test_traffic_is_simulated(capsys: pytest.CaptureFixture[str], stream: str) -> None:
    code, found, _ = run_json(capsys, "simulate", "traffic", *SMALL, "--stream", stream, "--scale", "200")
    assert code == 0
    assert found["scheme"] == "copter"
    assert found["rounds"] == 4
    assert found["gap"]["max"] <= 1e-6
    assert 0.5 < found["satisfied"] <= 1.0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_is_simulated(capsys: pytest.CaptureFixture[str], objective: str) -> None:
    code, found, _ = run_json(capsys, "simulate", "traffic", *SMALL, "--objective", objective, "--paths", "shortest")
    assert code == 0
    assert found["objective"] == objective
    assert found["gap"]["max"] <= 1e-6


def test_schemes_of_traffic_are_compared_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    pytest.importorskip("matplotlib")
    names = "copter,lp-all,pop-2,greedy"
    code, found, _ = run_json(
        capsys, "compare", "traffic", "--schemes", names, *SMALL, "--scale", "300", "--stream", "failure", "--out",
        str(tmp_path),
    )  # fmt: skip
    assert code == 0
    flow = {each["scheme"]: each["mean_flow"] for each in found["schemes"]}
    assert list(flow) == names.split(",")
    assert flow["copter"] == pytest.approx(flow["lp-all"], rel=1e-6)
    assert flow["greedy"] <= flow["copter"] * (1 + 1e-9)
    page = (tmp_path / "report.html").read_text()
    for name in ("map", "flow", "round_time", "utilisation", "prices", "price_map"):
        assert f'id="{name}"' in page
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_an_objective_that_a_scheme_does_not_know_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    schemes = ("--schemes", "copter,greedy") if command == "compare" else ("--scheme", "greedy")
    code, _, err = run_json(capsys, command, "traffic", *schemes, *SMALL, "--objective", "concurrent")
    assert code == 2
    assert err == "copter: greedy maximises the total flow only; concurrent is copter's\n"


def test_parts_that_there_are_no_servers_for_are_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run_json(capsys, "compare", "shards", "--schemes", "copter,pop-9", *FEW)
    assert code == 2
    assert err == "copter: POP with 9 parts of 8 servers: give at least one server a part\n"


def test_schemes_that_ended_are_shown_where_a_later_one_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Greedy, deadline_s: float | None) -> None:
        raise DemandError("no flow today")

    monkeypatch.setattr(Greedy, "solve", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main(["compare", "traffic", "--schemes", "copter,greedy", *SMALL, "--json"])
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.err.endswith("copter: no flow today\n")
    assert [each["scheme"] for each in json.loads(captured.out)["schemes"]] == ["copter"]


def test_max_min_flows_give_the_worst_pair_more(capsys: pytest.CaptureFixture[str]) -> None:
    """In 20 nodes the programs' flows are of hundreds: an absolute residual of 1e-6 is too much to ask of some."""
    network = ("--network", "random-20", "--rounds", "2", "--scale", "200")
    code, found, err = run_json(capsys, "compare", "traffic", "--schemes", "copter,max-min", *network)
    assert code == 0, err
    most, fair = found["schemes"]
    assert fair["least_share"] > most["least_share"] + 0.2
    assert fair["mean_flow"] < most["mean_flow"]
    assert most["least_share"] <= most["satisfied"]


def test_splits_are_written_for_routers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "splits.csv"
    options = ("--splits", str(file), "--buckets", "16", "--scale", "200")
    code, found, err = run_json(capsys, "simulate", "traffic", *SMALL, *options)
    assert code == 0
    assert "weights of 16 buckets a pair carry" in err
    with open(file, newline="") as rows:
        table = list(csv.DictReader(rows))
    weights: dict[tuple[str, str], int] = {}
    for row in table:
        pair, nodes = (row["source"], row["target"]), row["path"].split()
        weights[pair] = weights.get(pair, 0) + int(row["weight"])
        assert (nodes[0], nodes[-1]) == pair
    assert set(weights.values()) == {16}
    rates = {(row["source"], row["target"]): float(row["rate"]) for row in table}
    assert 0.9 * found["mean_flow"] < sum(rates.values()) < 1.2 * found["mean_flow"]
    code, _, err = run_json(capsys, "simulate", "traffic", *SMALL, "--splits", str(tmp_path / "none" / "x.csv"))
    assert code == 2
    assert "--splits" in err


@pytest.mark.parametrize("problem", [("traffic", *SMALL), ("shards", *FEW)])
def test_a_terminal_of_80_columns_shows_all_headings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, problem: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    options = ("--objective", "concurrent") if problem[0] == "traffic" else ()
    with pytest.raises(SystemExit) as stop:
        cli.main(["simulate", *problem, *options])
    assert not stop.value.code
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_shards_are_simulated_and_compared(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    code, found, _ = run_json(capsys, "simulate", "shards", *FEW, "--loads", "stateful", "--replicas", "2")
    assert code == 0
    assert found["out_of_band_rounds"] == 0
    code, found, _ = run_json(capsys, "compare", "shards", "--schemes", "copter,greedy", *FEW, "--out", str(tmp_path))
    assert code == 0
    moved = [each["movements"] for each in found["schemes"]]
    assert moved[0] < moved[1]
    page = (tmp_path / "report.html").read_text()
    assert all(f'id="{name}"' in page for name in ("imbalance", "movements", "round_time", "servers"))


def test_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["simulate", "traffic", *SMALL], ["simulate", "shards", *FEW]):
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments)
        assert not stop.value.code
        assert "copter" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("simulate", "traffic", "--network", "Atlantis"), "unknown network 'Atlantis'"),
        (("simulate", "traffic", "--network", "none.graphml"), "none.graphml: No such file"),
        (("simulate", "traffic", "--network", "random-1"), "at least 3 nodes"),
        (("simulate", "traffic", "--scheme", "fastest"), "unknown scheme 'fastest'"),
        (("simulate", "traffic", "--scheme", "greedy", "--objective", "concurrent"), "total flow only"),
        (("simulate", "traffic", "--scale", "nan"), "not a finite number"),
        (("simulate", "traffic", "--matrices", "none.txt"), "none.txt"),
        (("compare", "traffic", "--schemes", "copter,copter"), "each once"),
        (("simulate", "shards", "--replicas", "9", "--servers", "4"), "9 replicas do not fit"),
        (("simulate", "shards", "--shards", "999", "--servers", "2"), "take 999"),
        (("simulate", "shards", "--band", "1.5"), "band"),
        (("compare", "shards"), "name the schemes to compare: copter compare shards --schemes copter,greedy"),
        (("compare", "traffic"), "name the schemes to compare: copter compare traffic --schemes copter,greedy"),
        (("compare", "placement"), "name the schemes to compare: copter compare placement --schemes copter,first-fit"),
        (("compare", "placement", "--schemes", "copter,pop-2"), "unknown scheme 'pop-2'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    code, _, errors = run_json(capsys, *arguments)
    assert code == 2
    assert says in errors
    assert len(errors.strip().splitlines()) == 1


def test_shards_take_files_of_loads_sizes_and_memory_and_lose_a_server(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    loads, sizes, memory = (tmp_path / name for name in ("loads.csv", "sizes.txt", "memory.txt"))
    rows = [[(5 + at * (3 + row)) % 17 + 1.0 for at in range(12)] for row in range(4)]
    loads.write_text("# measured\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    sizes.write_text("\n".join(["1.5"] * 12))
    memory.write_text("9 9 9 12\n")
    few = ("--shards", "12", "--servers", "4", "--sizes", str(sizes), "--memory", str(memory), "--cost", "size")
    given = ("simulate", "shards", *few, "--loads-file", str(loads), "--lose", "1:2", "--back", "3:2", "--band", "0.4")
    code, found, _ = run_json(capsys, *given)
    assert code == 0
    assert found["rounds"] == 4
    assert found["over_memory_max"] == 0
    assert found["moved_size"] == pytest.approx(1.5 * found["movements"])
    assert found["movements"] >= 0.75  # the three shards of the lost server have new copies, over four rounds


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--loads-file", "LOADS"), "line 2: 3 numbers, there must be 2"),
        (("--sizes", "WORDS"), "WORDS, line 1: sizes of shards must be numbers"),
        (("--memory", "none.txt"), "none.txt: No such file"),
        (("--memory", "-1"), "not a number above 0"),
        (("--lose", "1-2"), "'1-2' is not ROUND:SERVER"),
        (("--lose", "0:1", "--lose", "0:0"), "round 0 is named twice"),
        (("--lose", "0:7"), "there is no server 7"),
        (("--lose", "3:1", "--rounds", "3"), "--lose 3:1: the rounds are 0 to 2"),
        (("--back", "9:1", "--loads-file", "NAN"), "NAN, round 1: the load of shard 0 is nan"),
    ],
)
def test_bad_files_of_shards_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...],
    says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "LOADS").write_text("1 2\n1 2 3\n")
    (tmp_path / "WORDS").write_text("one two\n")
    (tmp_path / "NAN").write_text("1 2\nnan 1\n")
    code, _, errors = run_json(capsys, "simulate", "shards", "--shards", "2", "--servers", "2", *options)
    assert code == 2
    assert says in errors
