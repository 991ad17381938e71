"""Saved runs: every bit flip, every older or forged file is one clear error; links are followed, pipes refused."""

from __future__ import annotations

import os
import pickle
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from copter_frontends.simulator import SimulationError, load_run
from copter_frontends.simulator.saved_run import MAGIC, OLD_MAGIC, save_run


class Forged:
    """Runs a command when it is read by pickle."""

    def __init__(self, call: object, *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call, self.arguments


def sealed(body: bytes) -> bytes:
    """A file whose checksum holds."""
    return MAGIC + blake2b(body, digest_size=32).digest() + body


@pytest.mark.parametrize("call", [os.system, eval, exec, getattr, np.load, open])
def test_forged_files_run_nothing(tmp_path: Path, call: object) -> None:
    mark = tmp_path / "ran"
    path = tmp_path / "f"
    arguments = ("os", "system") if call is getattr else (f"touch {mark}",)
    path.write_bytes(sealed(pickle.dumps(Forged(call, *arguments))))
    with pytest.raises(SimulationError, match="cannot be read"):
        load_run(path)
    assert not mark.exists()


def test_older_runs_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD_MAGIC + pickle.dumps(Forged(os.system, f"touch {tmp_path / 'ran'}")))
    with pytest.raises(SimulationError, match=r"copter 0\.1\.0") as caught:
        load_run(path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_every_bit_flip_is_refused(tmp_path: Path) -> None:
    data = sealed(pickle.dumps({"a": list(range(50))}))
    path = tmp_path / "f"
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(SimulationError):
            load_run(path)


def test_links_are_followed_and_pipes_refused(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(real)
    os.mkfifo(pipe)
    save_run({"no": "run"}, link)  # type: ignore[arg-type]
    assert link.is_symlink()
    assert real.read_bytes().startswith(MAGIC)
    with pytest.raises(SimulationError, match="no ordinary file"):
        save_run({"no": "run"}, pipe)  # type: ignore[arg-type]
    with pytest.raises(SimulationError, match="does not hold a run"):
        load_run(real)
