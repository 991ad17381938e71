"""A session's tape: what is recorded is played again, to the last bit; what goes wrong ends the recording only."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import copter
from copter import CopterError, InvalidDataError, Model, Session, SnapshotError, verify
from copter.session import tape_tools
from copter.session.playback import Playback, solved
from copter.storage.encoding import encode
from copter.storage.tape import TapeReader, TapeWriter, recorded
from copter.storage.tape.layout import FRONT, HEAD, ROUND
from tests.copter.storage.tape import tapes

PLAY = """
import sys
from copter.session.playback import Playback, solved
from copter.storage.encoding import encode
for played in Playback(sys.argv[1]):
    print(solved(played)[0].objective.hex())
"""


def small(path: Path | None = None) -> tuple[Model, Session]:
    model = Model()
    model.add_resources("a", 3)
    model.add_request("one", [1.0, 2.0], usage={"a": [1, 2]}, integer=True)
    session = Session(model)
    if path is not None:
        session.record(path)
    return model, session


@pytest.mark.parametrize("sense", ["max", "min"])
def test_every_operation_is_played_to_the_last_bit_in_another_process(tmp_path: Path, sense: tapes.Sense) -> None:
    objectives = tapes.every_edit(tmp_path / "t", sense=sense)
    again = subprocess.run(
        [sys.executable, "-c", PLAY, str(tmp_path / "t")], capture_output=True, text=True, check=True
    ).stdout.split()
    assert again == [each.hex() for each in objectives]


def test_a_plan_is_played_to_the_last_bit(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t", private=False)
    plans = []
    for played in Playback(tmp_path / "t"):
        _, plan, _ = solved(played)
        if plan is not None:
            assert played.plan is not None
            assert plan.objective == played.plan["objective"]
            plans.append(plan)
    assert len(plans) == 3


def test_a_journal_and_a_tape_of_one_model_hold_the_same_edits(tmp_path: Path) -> None:
    model, session = small()
    session.journal(tmp_path / "j")
    session.record(tmp_path / "t")
    model.update_cost("one", [4.0, 5.0])
    model.add_request("two", [1.0], usage={"a": [1]})
    last = session.solve().objective
    session.record(None)
    session.journal(None)
    assert Session.load(tmp_path / "j", journal=None).solve().objective == last
    assert [solved(played)[0].objective for played in Playback(tmp_path / "t")] == [last]


def test_edits_that_are_taken_back_are_not_on_the_tape(tmp_path: Path) -> None:
    model, session = small(tmp_path / "t")
    with pytest.raises(ZeroDivisionError), model.batch():  # noqa: PT012
        model.add_request("two", [1.0], usage={"a": [1]})
        1 / 0  # noqa: B018
    with model.batch():
        model.update_cost("one", [2.0, 3.0])
        with pytest.raises(copter.UnknownHandleError), model.batch():  # noqa: PT012
            model.update_cost("one", [7.0, 7.0])
            model.remove_request("none")
    session.solve()
    session.record(None)
    assert tape_tools.described(tmp_path / "t")["edits"] == {"cost": 1}


def test_the_callers_arrays_may_change_before_the_round_is_written(tmp_path: Path) -> None:
    model, session = small(tmp_path / "t")
    cost, scale = np.array([4.0, 9.0]), np.array([2.0])
    model.update_cost("one", cost)
    model.rescale_costs(["one"], scale, np.zeros(1))
    cost[:], scale[:] = 0.0, 0.0
    objective = session.solve().objective
    session.record(None)
    assert [solved(played)[0].objective for played in Playback(tmp_path / "t")] == [objective]


def test_a_failed_write_ends_the_tape_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, session = small(tmp_path / "t")
    session.solve()
    session._recorder.writer.drain()  # type: ignore[union-attr]
    monkeypatch.setattr("copter.storage.tape.writer.os.write", fails)
    model.update_cost("one", [4.0, 5.0])
    assert session.solve().objective == pytest.approx(5.0)
    session._recorder.writer.drain()  # type: ignore[union-attr]
    monkeypatch.undo()
    model.update_cost("one", [5.0, 6.0])
    assert session.solve().objective == pytest.approx(6.0)
    with pytest.raises(SnapshotError, match="cannot be written: No space"):
        session.record(None)
    assert [record.kind for record in TapeReader(tmp_path / "t")] == [b"BASE", ROUND]
    session.record(tmp_path / "another")


def fails(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_an_id_that_no_file_can_hold_ends_the_tape_and_not_the_edit(tmp_path: Path) -> None:
    model, session = small(tmp_path / "t")
    model.add_request(frozenset("x"), [1.0], usage={"a": [1]})
    session.solve()
    assert frozenset("x") in model.requests
    with pytest.raises(SnapshotError, match="cannot hold"):
        session.record(None)
    with pytest.raises(InvalidDataError):
        session.record(tmp_path / "again")


def test_a_file_that_is_there_and_a_second_tape_are_refused(tmp_path: Path) -> None:
    _model, session = small(tmp_path / "t")
    with pytest.raises(SnapshotError, match="end that first"):
        session.record(tmp_path / "other")
    with pytest.raises(SnapshotError, match="is there already"):
        small(tmp_path / "t")
    with pytest.raises(SnapshotError, match="cannot be written"):
        small(tmp_path / "none" / "t")


def test_without_answers_a_tape_is_small_and_played_all_the_same(tmp_path: Path) -> None:
    _model, session = small()
    session.record(tmp_path / "t", answers=False)
    objective = session.solve().objective
    session.record(None)
    assert tape_tools.described(tmp_path / "t")["with_prices"] == 0
    assert [solved(played)[0].objective for played in Playback(tmp_path / "t")] == [objective]


def test_all_sessions_of_a_block_are_on_one_tape(tmp_path: Path) -> None:
    with recorded(tmp_path / "t"):
        found = []
        for cost in (3.0, 4.0):
            model, session = small()
            model.update_cost("one", [cost, 1.0])
            found.append(session.solve().objective)
            model.update_cost("one", [cost, 9.0])
            found.append(session.solve().objective)
    session.solve()
    rounds = list(Playback(tmp_path / "t"))
    assert [played.stream for played in rounds] == [0, 0, 1, 1]
    assert [solved(played)[0].objective for played in Playback(tmp_path / "t")] == found


def test_a_tape_that_is_cut_is_read_up_to_its_last_whole_round(tmp_path: Path) -> None:
    objectives = tapes.every_edit(tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    ends = {record.end: record for record in TapeReader(tmp_path / "t")}
    for length in [*range(HEAD.size, len(whole), 211), *(end - 1 for end in ends)]:
        (tmp_path / "cut").write_bytes(whole[:length])
        reader = TapeReader(tmp_path / "cut")
        rounds = sum(record.kind == ROUND for record in reader)
        assert rounds == sum(record.kind == ROUND for end, record in ends.items() if end <= length)
        assert (reader.torn is None) == (length in {*ends, HEAD.size})
    (tmp_path / "cut").write_bytes(whole[: sorted(ends)[4] + 9])
    assert [solved(played)[0].objective for played in Playback(tmp_path / "cut")] == objectives[:4]


def test_a_tape_is_read_while_it_is_written(tmp_path: Path) -> None:
    _, session = small(tmp_path / "t")
    session.solve()
    session._recorder.writer.drain()  # type: ignore[union-attr]
    assert len(list(Playback(tmp_path / "t"))) == 1
    session.solve()
    session.record(None)
    assert len(list(Playback(tmp_path / "t"))) == 2


def resealed(data: bytearray) -> bytes:
    """A head with the checksum that it should have."""
    data[12:16] = struct.pack("<I", zlib.crc32(data[:12]))
    return bytes(data)


def test_another_version_and_another_kind_of_file_say_so(tmp_path: Path) -> None:
    small(tmp_path / "t")[1].record(None)
    data = bytearray((tmp_path / "t").read_bytes())
    data[8] = 9
    for content, message in (
        (resealed(data), "has format 9, this copter reads 1: use a newer copter"),
        (b"NAME  T\nROWS\n", "is not a copter tape"),
        (b"", "is empty"),
        (bytes(data[:11]), "cut short"),
        (bytes(data[:9]) + b"\x07" + bytes(data[10:]), "damaged in its head"),
    ):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(SnapshotError, match=message):
            list(Playback(tmp_path / "x"))
    with pytest.raises(SnapshotError, match="cannot be read"):
        TapeReader(tmp_path)


def test_a_length_of_forty_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    small(tmp_path / "t")[1].record(None)
    data = bytearray((tmp_path / "t").read_bytes())
    huge = FRONT.pack(b"ROUN", 0, 40 << 30, 40 << 30)
    (tmp_path / "x").write_bytes(bytes(data) + huge + struct.pack("<I", zlib.crc32(huge)) + b"x" * 99)
    reader = TapeReader(tmp_path / "x")
    assert len(list(reader)) == 2
    assert reader.torn == len(data)
    wide = FRONT.pack(b"ROUN", 0, 50, 40 << 30)
    (tmp_path / "x").write_bytes(bytes(data) + wide + struct.pack("<I", zlib.crc32(wide)) + b"x" * 99)
    with pytest.raises(SnapshotError, match="is not one of a tape"):
        list(TapeReader(tmp_path / "x"))


def test_any_flipped_byte_is_refused_or_cuts_the_tape(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t", rounds=3)
    whole = (tmp_path / "t").read_bytes()
    rng = np.random.default_rng(1)
    for at in rng.integers(0, len(whole), 150).tolist():
        data = bytearray(whole)
        data[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "x").write_bytes(bytes(data))
        with pytest.raises(SnapshotError) as caught:
            list(TapeReader(tmp_path / "x"))
        assert "\n" not in str(caught.value)


def test_an_edit_that_the_model_refuses_is_named_with_its_round(tmp_path: Path) -> None:
    _, session = small()
    writer = TapeWriter(tmp_path / "t")
    session._begin_recording(writer, True, True)
    session.solve()
    session._recorder._items.append(encode(("remove", (["none"],))))  # type: ignore[union-attr]
    session.solve()
    session.record(None)
    with pytest.raises(SnapshotError, match=r"round 1, byte \d+ cannot be played, edit 0 of the round: 'none'"):
        list(Playback(tmp_path / "t"))


def test_cut_plays_the_same_rounds_from_a_cold_start(tmp_path: Path) -> None:
    objectives = tapes.every_edit(tmp_path / "t")
    tape_tools.cut(tmp_path / "t", tmp_path / "c", 3, 6)
    again = [solved(played)[0].objective for played in Playback(tmp_path / "c")]
    assert again == pytest.approx(objectives[3:6], rel=1e-6)
    with pytest.raises(SnapshotError, match="no round 77"):
        tape_tools.cut(tmp_path / "t", tmp_path / "d", 77, 99)
    assert not os.path.exists(tmp_path / "d")


def test_an_anonymous_tape_has_no_name_and_the_same_rounds(tmp_path: Path) -> None:
    objectives = tapes.every_edit(tmp_path / "t")
    tape_tools.anonymised(tmp_path / "t", tmp_path / "a")
    assert [solved(played)[0].objective for played in Playback(tmp_path / "a")] == objectives
    content = b"".join(record.payload for record in TapeReader(tmp_path / "a"))
    assert b"first" in b"".join(record.payload for record in TapeReader(tmp_path / "t"))
    assert b"first" not in content.replace(b"first solve", b"")
    assert b"spare" not in content


def test_a_round_as_mps_is_its_program(tmp_path: Path) -> None:
    objectives = tapes.every_edit(tmp_path / "t")
    tape_tools.as_mps(tmp_path / "t", tmp_path / "r.mps", 5)
    assert copter.solve(copter.read_mps(tmp_path / "r.mps")).objective == pytest.approx(objectives[5], rel=1e-6)


def test_a_sealed_tape_of_wrong_values_is_refused_or_played(tmp_path: Path) -> None:
    tapes.every_edit(tmp_path / "t", rounds=4)
    records = list(TapeReader(tmp_path / "t"))
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(120):
        changed = int(rng.integers(len(records)))
        (tmp_path / "x").unlink(missing_ok=True)
        writer = TapeWriter(tmp_path / "x")
        for at, record in enumerate(records):
            payload = bytearray(record.payload)
            for place in rng.integers(0, len(payload), 3 * (at == changed)).tolist():
                payload[place] ^= 1 << int(rng.integers(8))
            writer.append(record.kind, record.stream, [bytes(payload)])
        writer.close()
        with np.errstate(all="ignore"):
            for use in (lambda: list(Playback(tmp_path / "x")), lambda: list(verify.verify(tmp_path / "x"))):
                try:
                    use()
                except (SnapshotError, verify.Unusable) as error:
                    refused += "\n" not in str(error)
    assert refused > 60


def test_arrays_that_change_later_in_a_batch_are_on_the_tape_as_they_were(tmp_path: Path) -> None:
    model, session = small(tmp_path / "t")
    session.solve()
    costs = np.array([5.0, 1.0])
    with model.batch():
        model.update_cost("one", costs)
        costs[:] = 100.0
        model.add_request("two", costs, usage={"a": [1, 2]})
    objective = session.solve().objective
    session.record(None)
    assert [solved(played)[0].objective for played in Playback(tmp_path / "t")][-1] == objective


def test_an_id_that_cannot_be_held_ends_the_tape_after_the_rounds_before_it(tmp_path: Path) -> None:
    model, session = small(tmp_path / "t")
    session.solve()
    with suppress(CopterError), model.batch():
        model.add_request(frozenset("x"), [1.0], usage={"a": [1]})
        model.remove_request("none")  # the batch is taken back, so that the tape goes on
    session.solve()
    model.add_request(frozenset("x"), [1.0], usage={"a": [1]})
    session.solve()
    with pytest.raises(SnapshotError, match=r"cannot hold: .*frozenset"):
        session.record(None)
    assert len(list(Playback(tmp_path / "t"))) == 2
