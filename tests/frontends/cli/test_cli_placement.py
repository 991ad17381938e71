"""``copter simulate|compare placement``."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run_json

from copter_frontends import cli
from copter_frontends.placement.servers import SCHEMES
from copter_frontends.policies.registry.network_names import PLACEMENT_SCHEMES

FEW = ("--servers", "12", "--rounds", "4", "--threads", "1")


def test_the_names_that_help_knows_are_those_there_are() -> None:
    assert PLACEMENT_SCHEMES == SCHEMES


def test_placement_is_simulated_with_lost_and_draining_servers(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = run_json(
        capsys, "simulate", "placement", *FEW, "--lose", "1:0-2", "--drain", "2:5", "--back", "3:0-2", "--load", "0.8"
    )
    assert code == 0
    assert found["scheme"] == "copter"
    assert found["rounds"] == 4
    assert 0.0 <= found["gap"]["max"] < 1.0
    assert found["tasks_running"] > 0
    assert found["refused"] == 0


def test_no_figure_is_cut_on_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        cli.main(["simulate", "placement", *FEW])
    printed = capsys.readouterr().out
    assert not stop.value.code
    assert "…" not in printed
    assert printed.splitlines()[-1].startswith("copter ")


def test_schemes_are_compared_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    names = "copter,first-fit,protean"
    code, found, _ = run_json(capsys, "compare", "placement", "--schemes", names, *FEW, "--out", str(tmp_path))
    assert code == 0
    assert [each["scheme"] for each in found["schemes"]] == names.split(",")
    page = (tmp_path / "report.html").read_text()
    for name in ("map", "worth", "waiting", "round_time"):
        assert f'id="{name}"' in page
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--scheme", "best"), "unknown scheme 'best'"),
        (("--lose", "9:0"), "rounds are 0 to 3, servers 0 to 11"),
        (("--lose", "1:12"), "servers 0 to 11"),
        (("--lose", "x"), "is not ROUND:SERVER"),
        (("--priorities", "1,x"), "is not whole numbers"),
        (("--priorities", "1,1"), "each once"),
        (("--azure", "nowhere"), "cannot be read"),
        (("--azure", "a", "--openb", "b"), "give one trace"),
    ],
)
def test_wrong_options_are_told(capsys: pytest.CaptureFixture[str], given: tuple[str, ...], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["simulate", "placement", *FEW, *given])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("events", [["--lose", "1:0-9"], ["--lose", "1:0-9", "--back", "2:0-9"]])
def test_rounds_without_any_server_have_no_used_share(events: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    given = ["simulate", "placement", "--servers", "10", "--rounds", "3", *events]
    code, found, _ = run_json(capsys, *given)
    assert code == 0
    assert 0.0 < found["fullest"] <= 1.0
    with pytest.raises(SystemExit) as ended:
        cli.main(given)
    assert not ended.value.code
    assert "nan" not in capsys.readouterr().out


def test_spread_selectors_priorities_and_moves_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--zones", "3", "--group-limit", "2", "--selective", "0.5", "--priorities", "1,4", "--migrations", "0.1")
    code, found, said = run_json(capsys, "simulate", "placement", *FEW, *given, "--move-cost", "5", "--lose", "1:0-2")
    assert code == 0
    assert found["worth_running"] > 0
    assert list(found["held_up"]) == ["all servers that it fits on are lost or draining: 'gen1'"]
    assert "tasks waited: all servers that it fits on" in said
