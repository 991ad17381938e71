"""The journal and snapshots: what was acknowledged comes back, damage is named, failed writes are taken back."""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from copter.runtime.errors import SnapshotError
from copter.storage.journal import SECTOR
from copter_serve.service import delta_log
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import Delta
from copter_serve.service.delta_log import DeltaLog
from copter_serve.service.store import Frozen, Stored, create, drop_segments, recover, segments, write_snapshot

RECORD = ClusterRecord.read({"types": {"t4": {"nodes": 4, "gpus_per_node": 4}}})


def made(folder: Path, sync: str = "never") -> Stored:
    return create(folder, RECORD, 100.0, sync)


def submit(state: ClusterState, log: DeltaLog, document: dict[str, Any]) -> asyncio.Future[None]:
    change = state.resolve(Delta.read(document), 1.0)
    return log.append("delta", json.dumps(change).encode(), state.apply(change))


def plan(version: int, job: str) -> bytes:
    given = {"gpu_type": "t4", "gpus": 4, "nodes": {"t4-0": 4}}
    return json.dumps({"header": {"version": version, "sequence": 1}, "set": {job: given}, "stop": []}).encode()


async def write_some(folder: Path, jobs: int, rotate_at: int = -1, snapshot: bool = True) -> Stored:
    """Jobs one by one, then a plan, then one job less; with a new segment on the way, and a snapshot of it or none."""
    stored = made(folder)
    log = DeltaLog(folder, stored.journal, stored.number, "always")
    for k in range(jobs):
        done = submit(stored.state, log, {"id": f"d{k}", "add_jobs": [{"id": f"j{k}", "weight": k + 1}]})
        if k == rotate_at:
            frozen = Frozen.of(stored.state, stored.book, stored.created_s)
            history = await log.rotate()
            if snapshot:
                write_snapshot(folder, frozen, history)
                drop_segments(folder, log.number)
    await done
    await log.append("plan", plan(1, "j0"))
    stored.book.take(json.loads(plan(1, "j0")), stored.state)
    await submit(stored.state, log, {"remove_jobs": ["j1"], "set_capacity": {"t4": 8}})
    await log.close()
    return stored


@pytest.mark.parametrize(("rotate_at", "snapshot"), [(-1, True), (3, True), (3, False), (9, True)])
def test_all_comes_back(tmp_path: Path, rotate_at: int, snapshot: bool) -> None:
    stored = asyncio.run(write_some(tmp_path / "c", 10, rotate_at, snapshot))
    back = recover(tmp_path / "c", "never")
    back.journal.close()
    assert back.state.sequence == stored.state.sequence == 11
    assert back.state.jobs == stored.state.jobs
    assert back.state.nodes == stored.state.nodes
    assert dict(back.state.accepted) == dict(stored.state.accepted)
    assert back.book.allocations == stored.book.allocations
    assert back.book.version == 1
    assert back.created_s == 100.0
    assert len(segments(tmp_path / "c")) == (2 if rotate_at == 3 and not snapshot else 1)


def test_what_jobs_have_had_comes_back(tmp_path: Path) -> None:
    """From the journal alone, and from a snapshot."""

    def timed(version: int, jobs: list[str], stop: list[str], now_s: float) -> bytes:
        given = {"gpu_type": "t4", "gpus": 4, "nodes": {"t4-0": 4}}
        header = {"version": version, "sequence": 1, "computed_s": now_s}
        return json.dumps({"header": header, "set": dict.fromkeys(jobs, given), "stop": stop}).encode()

    async def write(snapshot: bool) -> None:
        stored = made(folder)
        log = DeltaLog(folder, stored.journal, stored.number, "always")
        await submit(stored.state, log, {"add_jobs": [{"id": name} for name in "abc"]})
        for body in (timed(1, ["a"], [], 10.0), timed(2, ["b"], ["a"], 40.0)):
            await log.append("plan", body)
            stored.book.take(json.loads(body), stored.state)
        if snapshot:
            write_snapshot(folder, Frozen.of(stored.state, stored.book, stored.created_s), await log.rotate())
        await log.close()

    for k, snapshot in enumerate((False, True)):
        folder = tmp_path / f"c{k}"
        asyncio.run(write(snapshot))
        back = recover(folder, "never")
        back.journal.close()
        found = back.book.attained.at(100.0)
        assert {name: (each.gpu_s, each.waiting_s, each.by_type) for name, each in found.items()} == {
            "a": (120.0, 60.0, {"t4": 30.0}),
            "b": (240.0, 0.0, {"t4": 60.0}),
        }


def test_a_torn_last_record_is_cut_off_and_the_journal_goes_on(tmp_path: Path) -> None:
    asyncio.run(write_some(tmp_path / "c", 5))
    path = tmp_path / "c" / "journal-00000001"
    path.write_bytes(path.read_bytes()[:-7])
    back = recover(tmp_path / "c", "never")
    assert back.state.sequence == 5  # the last delta was in the torn record

    async def go_on() -> None:
        log = DeltaLog(tmp_path / "c", back.journal, back.number, "never")
        await submit(back.state, log, {"add_jobs": [{"id": "later"}]})
        await log.close()

    asyncio.run(go_on())
    again = recover(tmp_path / "c", "never")
    again.journal.close()
    assert "later" in again.state.jobs


@pytest.mark.parametrize("name", ["journal-00000001", "snapshot"])
def test_damage_is_named(tmp_path: Path, name: str) -> None:
    asyncio.run(write_some(tmp_path / "c", 5))
    path = tmp_path / "c" / name
    data = path.read_bytes()
    refused: list[str] = []
    for place in range(0, len(data), max(len(data) // 40, 1)):
        changed = bytearray(data)
        changed[place] ^= 0x40
        path.write_bytes(changed)
        try:
            recover(tmp_path / "c", "never").journal.close()
        except SnapshotError as error:
            refused.append(str(error))
    assert len(refused) > 30
    assert all(name in each for each in refused)
    path.write_bytes(data)
    recover(tmp_path / "c", "never").journal.close()


def test_a_missing_segment_is_noticed(tmp_path: Path) -> None:
    asyncio.run(write_some(tmp_path / "c", 10, 3, snapshot=False))
    (tmp_path / "c" / "journal-00000001").unlink()
    with pytest.raises(SnapshotError, match="missing"):
        recover(tmp_path / "c", "never")


def test_a_journal_of_another_cluster_is_noticed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        asyncio.run(write_some(tmp_path / name, 3))
    shutil.copy(tmp_path / "a" / "journal-00000001", tmp_path / "b" / "journal-00000001")
    with pytest.raises(SnapshotError, match="another cluster"):
        recover(tmp_path / "b", "never")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    stored = made(tmp_path / "c")
    with pytest.raises(SnapshotError, match="in use"):
        recover(tmp_path / "c", "never")
    stored.journal.close()


@contextmanager
def full_disk(used: int) -> Iterator[None]:
    """No file of this process can grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (used, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("sync", ["always", "never"])
def test_a_failed_write_takes_back_all_that_waits(tmp_path: Path, sync: str) -> None:
    """A full disk: everything that was not acknowledged is undone, later deltas go through."""
    told: list[Exception | None] = []

    async def run() -> None:
        stored = made(tmp_path / "c")
        log = DeltaLog(tmp_path / "c", stored.journal, stored.number, sync)
        await submit(stored.state, log, {"add_jobs": [{"id": "before"}]})
        with full_disk(log.written + 600):  # some of the record gets there
            first = [submit(stored.state, log, {"add_jobs": [{"id": f"lost{k}"}]}) for k in range(20)]
            await asyncio.sleep(0)  # these are with the disk's thread, the others wait behind them
            waiting = first + [submit(stored.state, log, {"add_jobs": [{"id": f"lost{k}"}]}) for k in range(20, 40)]
            waiting.append(log.append("plan", plan(1, "lost1"), then=told.append))
            waiting[3].cancel()  # its sender has gone
            results = await asyncio.gather(*waiting, return_exceptions=True)
            errors = [each for k, each in enumerate(results) if k != 3]
            assert all(isinstance(each, SnapshotError) and "File too large" in str(each) for each in errors)
            assert list(stored.state.jobs) == ["before"]
            assert stored.state.sequence == log.epoch == 1
            assert told == [errors[0]]
        await submit(stored.state, log, {"add_jobs": [{"id": "after"}]})
        await log.close()

    asyncio.run(run())
    back = recover(tmp_path / "c", "never")
    back.journal.close()
    assert sorted(back.state.jobs) == ["after", "before"]
    assert back.state.sequence == 2


def test_a_segment_that_cannot_be_made_leaves_the_old_one(tmp_path: Path) -> None:
    async def run() -> None:
        stored = made(tmp_path / "c")
        log = DeltaLog(tmp_path / "c", stored.journal, stored.number, "always")
        done = submit(stored.state, log, {"add_jobs": [{"id": "a"}]})
        (tmp_path / "c" / "journal-00000002").mkdir()
        turned = log.rotate()
        behind = submit(stored.state, log, {"add_jobs": [{"id": "b"}]})
        with pytest.raises(SnapshotError, match="no ordinary file"):
            await turned
        await asyncio.gather(done, behind, log.settled())
        await log.close()
        assert log.number == 1

    asyncio.run(run())
    (tmp_path / "c" / "journal-00000002").rmdir()
    assert list(recovered(tmp_path / "c").jobs) == ["a", "b"]


def test_what_waits_is_written_together(tmp_path: Path) -> None:
    async def run() -> list[int]:
        stored, sizes = made(tmp_path / "c"), []
        log = DeltaLog(tmp_path / "c", stored.journal, stored.number, "never", lambda n, _: sizes.append(n))
        await asyncio.gather(*(submit(stored.state, log, {"add_jobs": [{"id": f"j{k}"}]}) for k in range(2000)))
        await log.close()
        return sizes

    sizes = asyncio.run(run())
    assert sum(sizes) == 2000
    assert max(sizes) <= delta_log.MOST_TOGETHER
    assert len(recovered(tmp_path / "c").jobs) == 2000


def recovered(folder: Path) -> ClusterState:
    back = recover(folder, "never")
    back.journal.close()
    return back.state


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError, match="cannot be made"):
        made(tmp_path / "file" / "c")


def test_the_journal_keeps_room_ahead_and_cuts_it_off(tmp_path: Path) -> None:
    """The reserved zeros are no part of the journal: neither after a kill nor after an orderly end."""

    async def run() -> None:
        stored = made(tmp_path / "c", "always")
        log = DeltaLog(tmp_path / "c", stored.journal, stored.number, "always")
        await submit(stored.state, log, {"add_jobs": [{"id": "a"}]})
        path = tmp_path / "c" / "journal-00000001"
        assert path.stat().st_size >= delta_log.RESERVE
        shutil.copytree(tmp_path / "c", tmp_path / "killed")
        await log.close()
        assert path.stat().st_size == stored.journal.length < 1000

    asyncio.run(run())
    assert list(recovered(tmp_path / "c").jobs) == list(recovered(tmp_path / "killed").jobs) == ["a"]


@pytest.mark.parametrize("sector", [0, 1, 2])
def test_a_loss_of_power_while_a_record_is_written(tmp_path: Path, sector: int) -> None:
    """Any sector of the last record may be missing, as nobody was told that it is there; of others it is damage."""

    async def run() -> list[int]:
        stored = made(tmp_path / "c", "always")
        log = DeltaLog(tmp_path / "c", stored.journal, stored.number, "always")
        ends = []
        for name in "abc":
            jobs = [{"id": f"{name}{k}"} for k in range(20)]
            await submit(stored.state, log, {"add_jobs": jobs})
            ends.append(log.written)
        shutil.copytree(tmp_path / "c", tmp_path / "lost")
        await log.close()
        return ends

    ends = asyncio.run(run())
    path = tmp_path / "lost" / "journal-00000001"
    whole = path.read_bytes()
    for at, begin in enumerate(ends[:2]):
        first = begin if sector == 0 else begin - begin % SECTOR + sector * SECTOR
        last = begin - begin % SECTOR + (sector + 1) * SECTOR
        assert last < ends[at + 1]
        path.write_bytes(whole[:first] + bytes(last - first) + whole[last:])
        if at == 1:
            assert len(recovered(tmp_path / "lost").jobs) == 40
        else:
            with pytest.raises(SnapshotError, match="damaged"):
                recovered(tmp_path / "lost")
