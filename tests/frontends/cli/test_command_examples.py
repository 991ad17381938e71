"""The examples at the end of each command's help run, in the order in which a newcomer would try them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import copter
from copter_frontends.cli import COMMANDS, main
from copter_frontends.cli.examples import EXAMPLES, TASKS
from copter_serve.service import running

ORDER = [name for names in TASKS.values() for name in names]


def test_every_command_has_one_task_and_an_example() -> None:
    assert sorted(ORDER) == sorted(COMMANDS.data) == sorted(EXAMPLES)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model as MPS and as LP, and a service that says its settings in place of listening."""
    monkeypatch.chdir(tmp_path)
    model = copter.Model(sense="max")
    model.add_resource("gpu", 3)
    model.add_request("job", [1.0, 1.8], {"gpu": [1, 2]})
    copter.write_mps(model.to_linear_program(), "model.mps")
    copter.write_lp(model.to_linear_program(), "model.lp")
    Path("serve.yaml").write_text("data: clusters\nport: 0\n")
    monkeypatch.setattr(running, "run", lambda settings, again: 0 if settings == again() else 1)
    return tmp_path


def test_the_examples_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ORDER:
        for line in EXAMPLES[name]:
            words = shlex.split(line)
            assert words[:2] == ["copter", name]
            with pytest.raises(SystemExit) as ended:
                main(words[1:])
            said = capsys.readouterr()
            assert ended.value.code == 0, f"{line}: {said.err}"
    assert {"run.saved", "rounds.tape", "short.tape", "report"} <= {each.name for each in folder.iterdir()}


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
    assert "x<=None" not in said_by("simulate --help", capsys)[1]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("simulate sai", "there is no policy 'sai'; did you mean sia?"),
        ("simulat sia", "there is no command 'simulat'; did you mean simulate?"),
        ("compare --policies sia,gavle", "there is no policy 'gavle'; did you mean gavel?"),
    ],
)
def test_a_mistyped_name_gets_the_nearest_one(words: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said_by(words, capsys)
    assert code == 2
    assert meant in err
    assert len(err) < 200
