"""The long run's campaigns and the fuzzer, a little of each; make check-long does all of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.adversary.campaigns import CAMPAIGNS, Deadlines, allowed_s, control_s, run
from tests.adversary.fuzz import loop
from tests.adversary.long_run import by_kind, told
from tests.adversary.mutations import FORMATS, mutated, seeds, verdict

FEW = (30, 4, 20, 12, 80, 1, 12, 99, 2, 40, 10, 8, 1)


@pytest.mark.parametrize(("name", "count"), list(zip(CAMPAIGNS, FEW, strict=True)))
def test_a_little_of_every_campaign(name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.adversary.campaigns.LATE_S", 3600.0)  # the long run times; here plans are judged
    assert [fault for fault in run(name, count, tmp_path, 50_000) if fault is not None] == []


def test_faults_are_counted_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    """What differs in numbers alone is of one kind; all are counted, a few are shown."""
    faults = [(k, f"compact, instruction {3 * k} of 900, (False, {k > 2}, False): locked") for k in range(7)]
    faults.insert(3, (99, "solve, instruction 8 of 12: the next optimum is -1.5e-3, not 2.0"))
    assert [list(map(len, by_kind(faults).values()))] == [[7, 1]]
    told("calls", faults)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "calls: 7 x compact, instruction # of #, (#, #, #): locked (seeds 0, 1, 2, ...)"
    assert len(lines) == 1 + 3 + 1 + 1
    assert "-1.5e-3" in lines[-1]


@pytest.mark.parametrize("name", FORMATS)
def test_sound_files_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{FORMATS[name].suffix}"
    taken = 0
    for content in seeds(name):
        path.write_bytes(content)
        try:
            FORMATS[name].read(path)
        except ValueError:
            assert name == "trace"  # values that one column of some format does not take
            continue
        taken += 1
    assert taken >= 1


def test_the_fuzzer_keeps_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.adversary.fuzz.verdict", lambda *_: "wrong")
    assert loop(["MPS"], 0.01, 0, tmp_path, tmp_path / "kept") == 1
    assert list((tmp_path / "kept").iterdir())
    monkeypatch.undo()
    assert loop(list(FORMATS), 1.0, 0, tmp_path, tmp_path / "none") == 0
    assert not (tmp_path / "none").exists()


def test_a_fault_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges that never find anything prove nothing."""
    name = "deadlines of 1 to 500 ms, 10,000 GPUs"
    monkeypatch.setattr("tests.adversary.campaigns.LATE_S", -1e9)
    monkeypatch.setattr("tests.adversary.campaigns.LATE_SHARE", -1e9)
    assert "late" in str(next(run(name, 1, tmp_path)))
    content = mutated(random.Random(0), seeds("snapshot")[0])
    monkeypatch.setattr("tests.adversary.mutations.CopterError", ZeroDivisionError)
    assert "SnapshotError" in str(verdict("snapshot", content, tmp_path))


def test_how_late_deadlines_were_is_told() -> None:
    trial = Deadlines(200)
    trial.late[1] += [(-0.0005, 0.003), (0.012, 0.020)]
    trial.control += [0.005, 0.005, 0.005, 0.025]
    lines = trial.notes()
    assert len(lines) == 5
    assert lines[2] == "| 1 ms | 2 | 1 | 1 | +12.0 ms | +19.8, +20.0 ms |"
    assert lines[-1].startswith("Control: of 4 turns of fixed work of 5.0 ms, 1 took over 10 ms longer")
    assert control_s() > 0.0
    assert allowed_s(0.001) == 0.010
    assert allowed_s(0.5) == 0.05
