"""The examples at the end of each command's help run, in the order in which a newcomer would try them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from kube_cluster import FakeApi, served, two_teams

import copter
from copter_frontends.cli import COMMANDS, main
from copter_frontends.cli.examples import EXAMPLES, TASKS
from copter_serve.service import running

RECORDED = Path(__file__).parents[2] / "slurm" / "recorded" / "22.05" / "types"
ORDER = [name for names in TASKS.values() for name in names]


def test_every_command_has_one_task_and_an_example() -> None:
    assert sorted(ORDER) == sorted(COMMANDS.data) == sorted(EXAMPLES)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, objects of Kueue, and a service that says its settings in place of listening."""
    monkeypatch.chdir(tmp_path)
    model = copter.Model(sense="max")
    model.add_resource("gpu", 3)
    model.add_request("job", [1.0, 1.8], {"gpu": [1, 2]})
    copter.write_mps(model.to_linear_program(), "model.mps")
    copter.write_lp(model.to_linear_program(), "model.lp")
    Path("objects.json").write_text(json.dumps({"items": two_teams()}))
    Path("commands").mkdir()
    for name, recorded in (("squeue", "before_squeue.json"), ("sinfo", "before_sinfo.json"), ("scontrol", "")):
        if recorded:
            Path(f"{name}.json").write_bytes((RECORDED / recorded).read_bytes())
        command = Path("commands") / name
        command.write_text(f"#!/bin/sh\ncat '{tmp_path / name}.json'\n" if recorded else "#!/bin/sh\nexit 0\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'commands'}{os.pathsep}{os.environ['PATH']}")
    Path("serve.yaml").write_text("data: clusters\nport: 0\n")
    monkeypatch.setattr(running, "run", lambda read: 0 if read() == read() else 1)
    return tmp_path


def test_the_examples_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(FakeApi(two_teams())) as address:
        run_all(address, capsys)
    assert {"run.saved", "rounds.tape", "short.tape", "report", "shadow.html", "slurm.html"} <= {
        each.name for each in folder.iterdir()
    }


def run_all(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ORDER:
        for line in EXAMPLES[name]:
            words = shlex.split(line.replace("http://127.0.0.1:8001", address))
            assert words[:2] == ["copter", name]
            with pytest.raises(SystemExit) as ended:
                main(words[1:])
            said = capsys.readouterr()
            assert ended.value.code == 0, f"{line}: {said.err}"


def said_by(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_help_is_one_screen_by_task(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said_by("--help", capsys)
    assert code == 0
    assert all(f"{task}:" in out for task in TASKS)
    assert len(out.splitlines()) <= 40


def test_help_of_a_command_ends_with_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said_by("verify --help", capsys)
    assert EXAMPLES["verify"][0] in out
    for line in (*EXAMPLES["slurm"], *EXAMPLES["tape"]):
        assert line in said_by(" ".join(line.split()[1:3]) + " --help", capsys)[1]
    problems = [line for name in ("simulate", "compare") for line in EXAMPLES[name][-4 if name == "simulate" else -3 :]]
    for line in problems:
        _, name, problem, *_ = line.split()
        assert line in said_by(f"{name} {problem} --help", capsys)[1]
        assert line not in said_by(f"{name} --help", capsys)[1]
    assert {line.split()[2] for line in problems} == {"traffic", "shards", "placement", "kueue"}
    assert "x<=None" not in said_by("simulate --help", capsys)[1]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("simulate sai", "there is no policy 'sai'; did you mean sia?"),
        ("simulat sia", "there is no command 'simulat'; did you mean simulate?"),
        ("simulate sia --cluster sia-hte", "no cluster is named 'sia-hte'; did you mean sia-het?"),
        ("replay none.tape --peers hihgs", "unknown peer 'hihgs'; did you mean highs?"),
        ("simulate", "such as sia, hadar, hadar-online; `copter simulate --help` lists them"),
        ("simulate sia --compare gavel", "there is no solver 'gavel'; it is highs; `copter compare --policies A,B`"),
        ("what-if", "there is no command 'what-if': `copter explain RUN --what-if CHANGE`"),
        ("slurm shadow squeue.json sinfo.json", "give them to `copter shadow --slurm SQUEUE SINFO`"),
        ("compare --policies sia,gavle", "there is no policy 'gavle'; did you mean gavel?"),
    ],
)
def test_a_mistyped_name_gets_the_nearest_one(words: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said_by(words, capsys)
    assert code == 2
    assert meant in err
    assert len(err) < 200


@pytest.mark.parametrize("words", ["", "tape", "slurm"])
def test_a_group_alone_shows_its_help_line_by_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said_by(words, capsys)
    assert (code, out) == (2, "")
    assert err.startswith(f"Usage: copter {words}".strip())
    assert len(err.splitlines()) > 8


@pytest.mark.parametrize("words", ["", "simulate ", "tape info "])
def test_help_has_a_short_option(words: str) -> None:
    """In processes of their own: click keeps the options of a command's first call, which may be another test's."""
    told = []
    for option in ("-h", "--help"):
        command = [sys.executable, "-m", "copter_frontends.cli", *words.split(), option]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        told.append((done.returncode, done.stdout, done.stderr))
    assert told[0] == told[1]
    assert told[0][0] == 0
    assert "Usage: " in told[0][1]


def test_a_file_that_is_not_there_is_said_in_one_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said_by("simulate sia --cluster sia-het --trace none.csv", capsys)
    assert (code, err) == (2, "copter: none.csv: cannot be read: No such file or directory\n")
    code, _, err = said_by("verify none.tape", capsys)
    assert (code, err) == (2, "none.tape: cannot be read: No such file or directory\n")
