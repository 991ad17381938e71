"""The verifier accepts what copter answers, and rejects answers in which one number is better than the truth."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from copter import Model, Session, Settings, verify
from copter.runtime.errors import SnapshotError
from copter.session.playback import Playback
from copter.session.state import model_state
from copter.storage.tape import TapeReader
from copter.storage.tape.layout import FRONT, WORD
from tests.copter.storage.tape import lies, tapes

MAKERS: dict[str, Callable[[Path], object]] = {
    "private rows, maximised": tapes.every_edit,
    "private rows, minimised": lambda path: tapes.every_edit(path, 1, sense="min"),
    "plans": lambda path: tapes.every_edit(path, 2, private=False),
    "columns without bounds": tapes.free_columns,
    "infeasible": tapes.infeasible,
    "infeasible, private rows": lambda path: tapes.infeasible(path, True),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_every_answer_is_accepted(tmp_path: Path, maker: str, capsys: pytest.CaptureFixture[str]) -> None:
    MAKERS[maker](tmp_path / "t")
    assert verify.main([str(tmp_path / "t")]) == 0
    assert "0 rejected" in capsys.readouterr().out
    assert all(checked for _, checked, _ in verify.verify(tmp_path / "t"))


def test_a_bound_that_a_search_found_is_said_not_to_be_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    relaxed, searched = tapes.searched_bound(tmp_path / "t")
    assert searched < relaxed - 0.1
    assert verify.main([str(tmp_path / "t")]) == 0
    assert "1 accepted, 0 rejected" in (said := capsys.readouterr().out)
    assert "1 bound of a search, not proven" in said
    records = [(record, record.value()) for record in lies.TapeReader(tmp_path / "t")]
    plan = next(value for record, value in records if record.kind == b"PLAN")
    assert (plan["bound"], plan["searched"]) == (relaxed, searched)
    plan["bound"] = searched  # as if the prices proved it
    lies.written(tmp_path / "lie", records)
    assert verify.main([str(tmp_path / "lie")]) == 1


def rejected_of(maker: str, folder: Path, count: int, seed: int = 0) -> list[str]:
    """Lies that were accepted, of so many."""
    MAKERS[maker](folder / "t")
    rng, believed = np.random.default_rng(seed), []
    for _, lie in zip(range(count), lies.told(folder / "t", folder / "lie", rng), strict=False):
        if not any(faults for _, _, faults in verify.verify(folder / "lie")):
            believed.append(lie)
    return believed


@pytest.mark.parametrize("maker", MAKERS)
def test_every_lie_is_rejected(tmp_path: Path, maker: str) -> None:
    assert rejected_of(maker, tmp_path, 50) == []


@pytest.mark.long
@pytest.mark.parametrize("maker", MAKERS)
def test_four_hundred_lies_are_rejected_of_each_kind(tmp_path: Path, maker: str) -> None:
    assert rejected_of(maker, tmp_path, 400, seed=1) == []


def test_it_runs_alone_and_imports_nothing_of_copter(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t")
    shutil.copytree(Path(verify.__file__).parent, tmp_path / "alone", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import runpy, sys\nsys.path.insert(0, sys.argv.pop(1))\n"
    code += "try:\n    runpy.run_module('alone', run_name='__main__', alter_sys=True)\nfinally:\n"
    code += "    assert not any(name.startswith('copter') for name in sys.modules)\n"
    command = [sys.executable, "-I", "-c", code, str(tmp_path), str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "8 accepted" in done.stdout


def test_what_judges_tapes_stays_short() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in Path(verify.__file__).parent.glob("*.py")}
    assert max(lines.values()) <= 300
    assert lines["program.py"] + lines["judge.py"] + lines["bounds.py"] <= 590


def test_the_outward_bound_is_below_the_exact_one_and_near_it(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t")
    seen = 0
    records = [(record, record.value()) for record in lies.TapeReader(tmp_path / "t")]
    for at, (record, value) in enumerate(records):
        if record.kind == b"ROUN":
            program, answer = lies.program_at(records, at), value[-1]["answer"]
            flat = verify.Flat(program)
            outward = verify.proven(flat, lies.proof_multipliers(program, flat, answer))
            exact = lies.proof(program, answer)
            assert isinstance(exact, Fraction)
            assert Fraction(outward) <= exact
            assert float(exact - Fraction(outward)) <= 1e-11 * (1 + abs(outward))
            seen += 1
    assert seen == 8


@pytest.mark.parametrize("content", [b"", b"NAME  T\nROWS\n", b"\x89COPTERT", b"\x89COPTERT\x09\x00\x00\x00abcd"])
def test_a_file_of_no_use_is_one_line(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t").write_bytes(content)
    assert verify.main([str(tmp_path / "t")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert verify.main([str(tmp_path / "none")]) == 2


def test_a_damaged_tape_is_one_line_with_its_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tapes.every_edit(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    rng = np.random.default_rng(3)
    for at in rng.integers(0, len(whole), 60).tolist():
        data = bytearray(whole)
        data[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "x").write_bytes(bytes(data))
        assert verify.main([str(tmp_path / "x")]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "round" in said or "head" in said or at < 16


def test_a_sparse_file_of_forty_gigabytes_is_one_line_and_no_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tapes.infeasible(tmp_path / "t")
    front = FRONT.pack(b"ROUN", 0, 39 << 30, 50)
    with open(tmp_path / "t", "ab") as file:
        file.write(front + WORD.pack(zlib.crc32(front)))
        file.truncate(40 << 30)
    assert verify.main([str(tmp_path / "t")]) == 2
    assert re.search(
        r"round 2, byte \d+: a record is damaged: its head, of 50 bytes, 41875931136 stored", capsys.readouterr().err
    )
    with pytest.raises(SnapshotError, match=r"round 2, byte .*is not one of a tape"):
        list(TapeReader(tmp_path / "t"))


def test_a_tape_that_is_cut_is_judged_up_to_there_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tapes.infeasible(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    last = [record for record in TapeReader(tmp_path / "t") if record.kind == b"ROUN"][-1]
    for length in (last.begin + 9, last.end - 1):  # in its head, in its content
        (tmp_path / "cut").write_bytes(whole[:length])
        assert verify.main([str(tmp_path / "cut")]) == 0
        said = capsys.readouterr()
        assert "cut short in the record after round 0" in said.err
        assert "1 rounds, 1 accepted, 0 rejected" in said.out


@pytest.mark.parametrize(
    "operation", [("remove", (["none"],)), ("unheard", (1,)), ("fix", (0, 99)), ("count", ("a",)), ("drop_row", ("z",))]
)
def test_an_edit_that_no_model_takes_is_one_line_with_its_round(
    tmp_path: Path, operation: tuple[str, tuple[object, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    tapes.infeasible(tmp_path / "t")
    records = [(record, record.value()) for record in TapeReader(tmp_path / "t")]
    at = [k for k, (record, _) in enumerate(records) if record.kind == b"ROUN"][1]
    records[at][1].insert(0, ("edit", [operation]))
    lies.written(tmp_path / "x", records)
    assert verify.main([str(tmp_path / "x")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "round 1" in said
    with pytest.raises(SnapshotError, match="round 1, byte"):
        list(Playback(tmp_path / "x"))


@pytest.mark.parametrize("maker", MAKERS)
def test_another_process_repeats_a_tape_to_the_last_bit_on_one_thread(tmp_path: Path, maker: str) -> None:
    MAKERS[maker](tmp_path / "t")
    code = "import sys\nfrom copter.session.playback import Playback, solved\n"
    code += "for played in Playback(sys.argv[1], {'threads': 1}):\n"
    code += "    now, told = solved(played)[0].objective, played.mark['answer']['objective']\n"
    code += "    assert now == told or (now != now and told != told), (played.number, now, told)\n"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("costs", "proves"), [([1.0, 1.0], 3.0), ([1.0, 1.5], -np.inf), ([0.5, 1.0], -np.inf)])
def test_columns_without_bounds_prove_only_what_their_prices_pay_exactly(costs: list[float], proves: float) -> None:
    model = Model("min")
    model.add_resources("even", 3.0, lower=3.0)
    model.add_request("free", costs, usage={"even": [1.0, 1.0]}, limit=np.inf, lower=-np.inf, upper=np.inf)
    program = verify.Program(model_state(model))
    flat = verify.Flat(program)
    y = verify.multipliers(program, flat, {"prices": np.array([1.0])})
    assert float(verify.proven(flat, y, exact=True)) == proves
    assert verify.proven(flat, y) <= proves


def test_a_bound_of_a_request_whose_lower_bounds_reach_its_limit_is_accepted(tmp_path: Path) -> None:
    model = Model("max")
    model.add_resources("a", 10.0)
    model.add_request("before", [1.0, 2.0], usage={"a": [1, 1]})
    model.add_request("held", [1.0, 6.0], usage={"a": [1, 1]}, lower=[1.0, 0.0], upper=1.0)
    session = Session(model, Settings(threads=1))
    session.record(tmp_path / "t")
    assert session.solve().objective == 3.0
    session.record(None)
    assert list(verify.verify(tmp_path / "t")) == [(0, ["point", "bound"], [])]


def test_whole_plans_are_judged_alike_in_floats_and_in_rational_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan of whole columns on whole amounts needs no rational numbers; a unit too many is seen there too."""
    model = Model("max")
    model.add_resources("g", 6)
    for k in range(8):
        model.add_request(k, [1.0 + k / 7, 2.5], {"g": [1, 2]}, integer=True)
    session = Session(model)
    session.record(tmp_path / "t")
    session.solve_integer()
    model.set_count("g", 5)
    session.solve_integer()
    session.record(None)
    wrong = "resource 'g' is used beyond its bounds"
    for whole in (True, False):
        if not whole:
            monkeypatch.setattr(verify.judge, "are_whole", lambda *given: False)
        assert all(checked and not faults for _, checked, faults in verify.verify(tmp_path / "t"))
        records = [(record, record.value()) for record in lies.TapeReader(tmp_path / "t")]
        first, last = (value for record, value in records if record.kind == b"PLAN")
        last["column"] = first["column"]  # the plan of one more unit
        lies.written(tmp_path / "lie", records)
        assert wrong in [fault for *_, faults in verify.verify(tmp_path / "lie") for fault in faults]
    assert not verify.judge.are_whole(np.array([2.0**52]), np.ones(1), np.array([-np.inf]), np.array([2.0**52]))


def test_the_command_hears_of_every_round(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t")
    heard: list[int] = []
    assert verify.main([tmp_path / "t"], lambda path, rounds: heard.append(rounds)) == 0
    assert heard == list(range(len(heard)))
    assert len(heard) > 2
