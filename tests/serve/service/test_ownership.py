"""The service deletes what it made, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is not installed")

from copter.runtime.errors import SnapshotError
from copter_serve.service import ownership, store
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.clusters import Clusters
from copter_serve.service.metrics import Metrics
from copter_serve.service.problems import Problem
from copter_serve.service.settings import ServeSettings
from copter_serve.service.store import create

RECORD = {"types": {"a100": {"nodes": 2, "gpus_per_node": 4}}}


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, with the contents of files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def record() -> ClusterRecord:
    return ClusterRecord.read(RECORD)


def home(folder: Path) -> dict[str, bytes | None]:
    """A folder as people have them: documents, dot folders, names that look like the service's."""
    for name in ("documents/letters", ".ssh", "photos", "empty", ".doomed-not-yours", f"{ownership.TRASH}mine-1"):
        (folder / name).mkdir(parents=True)
    (folder / "documents/letters/one.txt").write_text("dear")
    (folder / ".ssh/id").write_text("secret")
    (folder / "photos/snapshot").write_text("a picture of a snapshot")
    (folder / "photos/journal-00000001").write_text("travels")
    (folder / ".doomed-not-yours/file").write_text("kept")
    (folder / f"{ownership.TRASH}mine-1/file").write_text("kept")
    return tree(folder)


def opened(folder: Path) -> Clusters:
    return Clusters(ServeSettings(data=folder), Metrics())


def closed(clusters: Clusters) -> None:
    for stored in clusters._stored.values():
        stored.journal.close()
    clusters._stored.clear()
    asyncio.run(clusters.close())


def test_a_folder_full_of_other_peoples_files_is_left_as_it_is(tmp_path: Path, record: ClusterRecord) -> None:
    before = home(tmp_path)
    create(tmp_path / "c", record, 1.0, "never").journal.close()
    for _ in range(2):
        clusters = opened(tmp_path)
        assert list(clusters._stored) == ["c"]
        closed(clusters)
    after = tree(tmp_path)
    assert {name: after[name] for name in before} == before
    assert ownership.take_away(tmp_path / "c")
    assert {name: held for name, held in tree(tmp_path).items() if name != "lock"} == before


def test_other_peoples_files_in_a_clusters_folder_stay(tmp_path: Path, record: ClusterRecord) -> None:
    create(tmp_path / "c", record, 1.0, "never").journal.close()
    (tmp_path / "c/notes").mkdir()
    (tmp_path / "c/notes/why.txt").write_text("because")
    assert not ownership.take_away(tmp_path / "c")
    kept = list(tmp_path.rglob("why.txt"))
    assert [path.read_text() for path in kept] == ["because"]
    assert not (tmp_path / "c").exists()
    closed(opened(tmp_path))
    assert [path.read_text() for path in tmp_path.rglob("why.txt")] == ["because"]


def test_links_are_not_followed(tmp_path: Path, record: ClusterRecord) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    other.mkdir()
    create(data / "c", record, 1.0, "never").journal.close()
    (other / "journal-00000009").write_text("mine")
    (data / "c/journal-00000009").symlink_to(other / "journal-00000009")
    (data / "linked").symlink_to(other, target_is_directory=True)
    assert not ownership.is_owned(data / "linked")
    ownership.take_away(data / "c")
    assert (other / "journal-00000009").read_text() == "mine"


@pytest.mark.parametrize("written", [[], ["mark"], ["mark", "snapshot"], ["mark", ".snapshot.x1.part"]])
def test_what_a_killed_service_had_half_made_is_swept_up(tmp_path: Path, written: list[str]) -> None:
    made = tmp_path / f"{ownership.MAKING}c-1"
    made.mkdir()
    for name in written:
        if name == "mark":
            ownership.claim(made)
        else:
            (made / name).write_bytes(b"half")
    assert ownership.sweep(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, record: ClusterRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise SnapshotError("the disk is full")

    monkeypatch.setattr(store, "write_snapshot", full)
    with pytest.raises(SnapshotError, match="full"):
        create(tmp_path / "c", record, 1.0, "never")
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_of_the_first_version_opens_and_is_marked(tmp_path: Path, record: ClusterRecord) -> None:
    create(tmp_path / "c", record, 1.0, "never").journal.close()
    (tmp_path / "c" / ownership.MARK).unlink()
    clusters = opened(tmp_path)
    assert list(clusters._stored) == ["c"]
    assert ownership.is_owned(tmp_path / "c")
    assert (tmp_path / "c" / ownership.MARK).exists()
    closed(clusters)


def test_a_folder_that_is_there_is_no_place_for_a_cluster(tmp_path: Path, record: ClusterRecord) -> None:
    before = home(tmp_path)
    with pytest.raises(SnapshotError, match="take another id"):
        create(tmp_path / "photos", record, 1.0, "never")
    assert tree(tmp_path) == before


def test_no_cluster_is_called_as_the_lock(tmp_path: Path, record: ClusterRecord) -> None:
    clusters = opened(tmp_path)
    with pytest.raises(Problem, match="no id of a cluster"):
        asyncio.run(clusters.make("lock", record))
    closed(clusters)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Not even to a file that is not there yet: it would be made in somebody's folder."""
    data, foreign = tmp_path / "data", tmp_path / "foreign"
    data.mkdir()
    (data / "lock").symlink_to(foreign)
    with pytest.raises(SnapshotError, match="cannot be used"):
        Clusters(ServeSettings(data=data), Metrics())
    assert not foreign.exists()
