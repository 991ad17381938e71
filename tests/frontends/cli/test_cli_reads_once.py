"""A run reads its files once: what is replaced or deleted meanwhile changes neither report nor continuation."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from copter.storage import inputs
from copter_frontends.cli import main
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.goodput import measured
from copter_frontends.simulator import Simulation

CLUSTER = "types:\n  - {name: a100, gpus_per_node: 4, nodes: 2}\n  - {name: t4, gpus_per_node: 4, nodes: 2}\n"
OTHER = "types:\n  - {name: t4, gpus_per_node: 1, nodes: 1}\n"
TRACE = "job_id,num_gpu,submit_time,duration,model_name\n" + "".join(
    f"j{k},{1 + k % 4},{60 * k},{600 + 100 * k},resnet50\n" for k in range(12)
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "trace.csv").write_text(TRACE)
    return tmp_path


def code_of(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    code = code_of(list(arguments))
    out, err = capsys.readouterr()
    assert code == 0, err
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def asked(files: Path, *more: str) -> tuple[str, ...]:
    named = ("--cluster", str(files / "cluster.yaml"), "--trace", str(files / "trace.csv"))
    return (*named, "--rounds", "20", "--warmup-rounds", "0", "--json", *more)


def shared(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: summary[name] for name in ("gpus", "finish_time_fairness", "latency_ratio", "jobs_completed")}


def change_before_the_rounds(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    run = Simulation.run

    def changed(self: Simulation, *arguments: Any, **named: Any) -> Any:
        change()
        return run(self, *arguments, **named)

    monkeypatch.setattr(Simulation, "run", changed)


@pytest.mark.parametrize("what", ["replaced", "deleted"])
def test_the_report_is_of_the_files_that_were_read(capsys, files, monkeypatch, what):
    expected = told(capsys, "simulate", "sia", *asked(files))

    def change() -> None:
        for name in ("cluster.yaml", "trace.csv"):
            (files / name).write_text(OTHER) if what == "replaced" else (files / name).unlink(missing_ok=True)

    with monkeypatch.context() as patch:
        change_before_the_rounds(patch, change)
        saved = str(files / "run.copter")
        found = told(capsys, "simulate", "sia", *asked(files, "--save", saved))
    assert shared(found) == shared(expected)
    again = told(capsys, "resume", saved, "--json")  # the files are other ones by now
    assert shared(again) == shared(expected)


def test_compared_policies_see_the_same_files(capsys, files, monkeypatch):
    options = ("compare", "--policies", "sia,gavel", *asked(files))
    expected = told(capsys, *options)
    change_before_the_rounds(monkeypatch, lambda: (files / "cluster.yaml").write_text(OTHER))
    found = told(capsys, *options)
    assert [shared(each) for each in found["policies"]] == [shared(each) for each in expected["policies"]]


def test_a_pipe_serves_every_policy(capsys, files):
    expected = told(capsys, "compare", "--policies", "sia,gavel", *asked(files))
    pipe = files / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TRACE,), daemon=True)
    writer.start()
    arguments = [str(pipe) if each.endswith("trace.csv") else each for each in asked(files)]
    found = told(capsys, "compare", "--policies", "sia,gavel", *arguments)
    writer.join()
    assert [shared(each) for each in found["policies"]] == [shared(each) for each in expected["policies"]]


@pytest.mark.parametrize("door", ["--trace", "--cluster", "--config", "solve", "explain", "verify", "info", "replay"])
def test_a_pipe_without_a_writer_is_an_error(capsys, tmp_path, monkeypatch, door):
    monkeypatch.setattr(inputs, "WRITER_S", 0.1)
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    name = str(pipe)
    arguments = {
        "solve": ["solve", name],
        "explain": ["explain", name, "j"],
        "verify": ["verify", name],
        "info": ["tape", "info", name],
        "replay": ["replay", name],
        "--cluster": ["simulate", "sia", "--cluster", name],
    }.get(door, ["simulate", "sia", "--gpus", "64", door, name])
    assert code_of(arguments) == 2
    assert name in capsys.readouterr().err


def test_a_device_without_an_end_is_refused(capsys):
    for arguments in (["simulate", "sia", "--gpus", "64", "--trace", "/dev/zero"], ["solve", "/dev/zero"]):
        assert code_of(arguments) == 2
        assert "device, which has no end" in capsys.readouterr().err


def test_a_stream_without_an_end_is_refused(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(BrokenPipeError), pipe.open("wb") as file:
            while True:
                file.write(bytes(1 << 16))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(OSError, match="more than 1,000,000 bytes, and may have no end"):
        inputs.contents(pipe, 1_000_000)
    writer.join()


def test_profiles_are_read_once_for_a_load_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """--load samples jobs first: the sample and the run share what was read."""
    read: list[object] = []
    monkeypatch.setattr(measured, "read_profiles", lambda directory: read.append(directory) or {})
    words = [
        "sia",
        "--gpus",
        "64",
        "--semantics",
        "sia-artifact",
        "--profiles",
        "there",
        "--load",
        "1.0",
        "--rounds",
        "2",
    ]
    run = Run.read(SimulateOptions.of(**simulate.make_context("simulate", words).params))
    assert read == ["there"]
    assert run.asked.load == 1.0
    assert run.inputs.profiles == "there"
