"""Which build of the compiled modules is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from copter.runtime.processor import ASKED, LEVELS, chosen_level, level_of, processor_level, with_levels

V2, V3, V4 = LEVELS


def test_levels_are_told_by_their_flags() -> None:
    second = LEVELS[V2] | {"sse", "fpu"}
    assert level_of(second) == V2
    assert level_of(second | LEVELS[V3]) == V3
    assert level_of(second | LEVELS[V3] | LEVELS[V4]) == V4
    assert level_of(second | LEVELS[V4]) == V2, "a level needs those below it"
    assert level_of((second | LEVELS[V3]) - {"bmi2"}) == V2
    assert level_of({"sse", "sse2"}) is None


def test_a_processor_is_read_from_its_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tmp_path / "cpuinfo"
    known.write_text(f"processor\t: 0\nflags\t\t: fpu {' '.join(LEVELS[V2] | LEVELS[V3])}\n\nprocessor\t: 1\n")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert processor_level(str(known)) == V3
    assert processor_level(str(tmp_path / "missing")) is None
    known.write_text("processor : 0\n")
    assert processor_level(str(known)) is None
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert processor_level(str(known)) is None


def test_builds_of_the_own_level_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in (V3, V4):
        (tmp_path / level / "model/matrix").mkdir(parents=True)
    own = ["/somewhere/copter/model/matrix"]

    def found(level: str | None) -> list[str]:
        monkeypatch.setattr("copter.runtime.processor.processor_level", lambda: level)
        return with_levels("copter.model.matrix", own, tmp_path)

    assert found(V4) == [str(tmp_path / V4 / "model/matrix"), str(tmp_path / V3 / "model/matrix"), *own]
    assert found(V3) == [str(tmp_path / V3 / "model/matrix"), *own]
    assert found(V2) == own
    assert found(None) == own
    monkeypatch.setattr("copter.runtime.processor.processor_level", lambda: V4)
    assert with_levels("copter.storage", own, tmp_path) == own, "no such folder"


@pytest.mark.parametrize(("asked", "level"), [(V2, V2), (V3, V3), (V4, V3), ("x86-64-v9", V3), ("", V3)])
def test_a_lower_level_can_be_asked_for(asked: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("copter.runtime.processor.processor_level", lambda: V3)
    monkeypatch.setenv(ASKED, asked)
    assert chosen_level() == level
