"""The thread that writes without Python's lock: what it is told is on disk when it says so, errors come back."""

from __future__ import annotations

import errno
import os
import select
import threading
from pathlib import Path

import pytest

from copter.storage.disk_thread import DiskThread


@pytest.fixture
def file(tmp_path: Path) -> int:
    return os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)


def test_orders_are_carried_out_one_after_the_other(file: int) -> None:
    disk = DiskThread()
    sent = [bytes([k]) * (1 + 7000 * k) for k in range(20)]
    for k, data in enumerate(sent):
        disk.put(file, data, k % 2 == 0)
        assert disk.waiting
        assert select.select([disk.fileno()], [], [], 60.0)[0]
        assert disk.outcome() == (0, True, True)
        assert not disk.waiting
    assert os.pread(file, 10_000_000, 0) == b"".join(sent)
    disk.close()
    disk.close()


def test_room_is_made_ahead(file: int) -> None:
    disk = DiskThread()
    disk.put(file, b"abc", True, 0, 100_000)
    assert disk.outcome()[0] == 0
    assert os.fstat(file).st_size == 100_000
    assert os.pread(file, 5, 0) == b"abc\0\0"
    disk.close()


def test_errors_come_back(tmp_path: Path) -> None:
    disk = DiskThread()
    path = tmp_path / "read-only"
    path.write_bytes(b"")
    closed = os.open(path, os.O_RDONLY)
    disk.put(closed, b"x", True)
    assert disk.outcome() == (errno.EBADF, True, True)
    to_read, to_write = os.pipe()
    disk.put(to_write, b"x", True, 0, 10)  # a pipe has no room to be made, and no disk to wait for
    code, grew, ever = disk.outcome()
    assert (code, grew) == (errno.EINVAL, False)
    assert os.read(to_read, 1) == b"x"
    assert ever  # only a file system that says so never can
    disk.close()


def test_misuse_is_refused(file: int) -> None:
    disk = DiskThread()
    with pytest.raises(RuntimeError, match="no order"):
        disk.outcome()
    disk.put(file, b"x", False)
    with pytest.raises(RuntimeError, match="being carried out"):
        disk.put(file, b"y", False)
    disk.close()  # after what it was given
    assert os.pread(file, 10, 0) == b"x"
    with pytest.raises(RuntimeError, match="has ended"):
        disk.put(file, b"y", False)


def test_threads_end(file: int) -> None:
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        disk = DiskThread()
        disk.put(file, b"x", True)
        disk.close()
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before
