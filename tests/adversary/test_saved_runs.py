"""Saved runs hold data only: every bit flip, every older or forged file is one clear error."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import copter
from copter import Settings
from copter.runtime.settings import Internals
from copter.storage.encoding import Reader, encode
from copter_frontends.cli.saving import RunInputs, RunNote
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.simulator import Simulation, SimulationError, load_run
from copter_frontends.simulator.rebuilt_objects import Rebuilder, array_from
from copter_frontends.simulator.saved_classes import SETTINGS, SavedClasses
from copter_frontends.simulator.saved_objects import Flattener, _plain_array
from copter_frontends.simulator.saved_run import PICKLES, RUN, save_run
from copter_frontends.simulator.saved_tables import packed
from copter_frontends.vocabulary import Cluster, Job, configurations_of


def simulation(policy: str = "sia") -> Simulation:
    """A run in its middle."""
    cluster = Cluster.of({"t4": (2, 4)})
    model = GoodputModel(configurations_of(cluster))
    made = POLICIES[policy].build(cluster, model, "full", Settings(threads=1))
    jobs = [Job(f"j{i}", "cifar10", 50.0 * i) for i in range(4)]
    run = Simulation(cluster, jobs, made, model, made.round_s, deadline_s=1e6)
    for _ in range(3):
        run.step()
    return run


class Forged:
    """Runs a command when it is read by pickle."""

    def __init__(self, call: object, *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call, self.arguments


def written(path: Path, nodes: list[tuple[Any, ...]], version: str = copter.__version__) -> Path:
    """A file with these nodes, whose checksum holds."""
    order = np.arange(len(nodes), dtype=np.int64)[::-1].copy()
    run = {"nodes": nodes, "order": order, "tables": [], "arrays": [], "text": "", "lengths": order[:0]}
    payload = encode({"copter": version, "run": run})
    path.write_bytes(b"".join(RUN.close(payload)))
    return path


@pytest.mark.parametrize("magic", PICKLES)
def test_pickles_of_older_versions_are_refused_in_one_line(tmp_path: Path, magic: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(magic + pickle.dumps(Forged(os.system, f"touch {tmp_path / 'ran'}")))
    with pytest.raises(SimulationError, match=r"copter 0\.1\.0 \(format \d\), as a pickle") as caught:
        load_run(path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_other_versions_are_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "f", [("list", [])], "0.0.7")
    with pytest.raises(SimulationError, match=r"copter 0\.0\.7"):
        load_run(path)
    older = encode(
        {"copter": copter.__version__, "run": {"nodes": [("list", [])], "order": np.zeros(1, dtype=np.int64)}}
    )
    (tmp_path / "older").write_bytes(b"".join(RUN.close(older)))
    with pytest.raises(SimulationError, match="without tables: run it again"):
        load_run(tmp_path / "older")
    newer = bytearray(path.read_bytes())
    newer[8] += 1
    path.write_bytes(newer)
    with pytest.raises(SimulationError, match=f"format {RUN.format + 1}, this copter reads up to {RUN.format}"):
        load_run(path)


FORGED: list[list[tuple[Any, ...]]] = [
    [("object", name, ["args"], [("touch ran",)])]
    for name in (
        "os:system",
        "builtins:eval",
        "subprocess:Popen",
        "copter_frontends.cli.__main__:main",
        "copter_frontends.cli.running:SimulateOptions",
        "copter_frontends.simulator.simulation:np",
        "copter_frontends.simulator.simulation:Sequence",
        "copter_frontends.simulator.errors:SimulationError",
        "copter_frontends.simulator.simulation:Simulation.run",
        "copter_frontends.no_such_module:X",
        "copter.storage.journal:Journal",
        "copter_frontends..simulator:Simulation",
    )
]
FORGED += [
    [("function", "os:system", [])],
    [("function", "copter_frontends.simulator.saved_run:save_run", [])],
    [("method", "run", [(1,)]), ("object", "copter_frontends.vocabulary.cluster:Cluster", ["types", "nodes"], [1, 2])],
    [("method", "__class__", [(1,)]), ("list", [])],
    [("default", "eval", [])],
    [("array", ["O", [1], "C", b"12345678"], [])],
    [("generator", {"bit_generator": "Forged"}, [])],
    [("enum", "copter_frontends.vocabulary.cluster:Cluster", "mro", [])],
    [("sparse", "Forged", [1, 1], [1, 2, 3])],
    [("tuple", [(0,)])],
    [("list", [(7,)])],
    [("no such kind", [])],
    [()],
    [("model", {}, [])],
    [("model", 0, [])],
    [("template", 0, 0, [])],
    [("session", {}, [])],
    [("object", "copter_frontends.simulator.simulation:Simulation", ["policy"], [])],
    [("object", "copter_frontends.vocabulary.job:Job", ["id"], ["j"])],
]


@pytest.mark.parametrize("nodes", FORGED, ids=lambda nodes: str(nodes[0])[:60])
def test_forged_nodes_make_nothing(tmp_path: Path, nodes: list[tuple[Any, ...]], monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SimulationError, match="cannot be read"):
        load_run(written(tmp_path / "f", nodes))
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_every_bit_flip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    small = written(path, [("list", ["a", 1.5, None])]).read_bytes()
    save_run(simulation(), path)
    rng, whole = random.Random(1), path.read_bytes()
    bits = [(small, bit) for bit in range(8 * len(small))]
    bits += [(whole, rng.randrange(8 * len(whole))) for _ in range(300)]
    for data, bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(SimulationError):
            load_run(path)


def test_damage_behind_a_forged_checksum_is_an_error_or_a_run(tmp_path: Path) -> None:
    """No crash, no other exception: only SimulationError, or a run of some sort."""
    path, rng = tmp_path / "f", random.Random(2)
    save_run(simulation(), path)
    payload = bytes(RUN.open(path.read_bytes(), "f"))
    refused = 0
    for _ in range(150):
        forged = bytearray(payload)
        for _ in range(rng.choice((1, 1, 2, 8))):
            forged[rng.randrange(len(forged))] = rng.randrange(256)
        path.write_bytes(b"".join(RUN.close([bytes(forged)])))
        try:
            assert isinstance(load_run(path), Simulation)
        except SimulationError:
            refused += 1
    assert refused


def test_runs_of_values_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    path, order = tmp_path / "f", np.zeros(1, dtype=np.int64)
    for lengths in ([1 << 62, 1 << 62], [-1, 1]):
        long = ("runs", (2,), np.zeros(2), np.array(lengths, dtype=np.int64))
        run = {"nodes": [("array", long, [])], "order": order, "tables": [], "arrays": [], "text": ""}
        payload = encode({"copter": copter.__version__, "run": {**run, "lengths": order[:0]}})
        path.write_bytes(b"".join(RUN.close(payload)))
        with pytest.raises(SimulationError, match=r"file's size allows|negative length"):
            load_run(path)


def full_cluster(waiting: int) -> Simulation:
    """A run in which so many jobs wait."""
    cluster = Cluster.of({"t4": (2, 4)})
    model = GoodputModel(configurations_of(cluster))
    made = POLICIES["chronus"].build(cluster, model, "full", Settings(threads=1))
    jobs = [Job(f"job-{i}", "cifar10", 0.37 * i, 1e6 + i) for i in range(waiting)]
    run = Simulation(cluster, jobs, made, model, made.round_s, deadline_s=1e6)
    for _ in range(6):
        run.step()
    return run


def test_a_job_that_waits_takes_few_bytes_and_comes_back(tmp_path: Path) -> None:
    run, sizes = full_cluster(1000), list[int]()
    for name, each in (("few", run), ("many", full_cluster(3000))):
        save_run(each, tmp_path / name)
        sizes.append((tmp_path / name).stat().st_size)
    assert sizes[1] - sizes[0] < 400 * 2000  # as objects, one by one, they took 2,200 bytes each
    back = load_run(tmp_path / "few")
    assert back.active == run.active
    assert [back.step().objective for _ in range(2)] == [run.step().objective for _ in range(2)]
    assert back._occupancy.allocations == run._occupancy.allocations


def test_links_are_followed_and_pipes_refused(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(real)
    os.mkfifo(pipe)
    run = simulation("fifo")
    save_run(run, link)
    assert link.is_symlink()
    assert isinstance(load_run(real), Simulation)
    with pytest.raises(SimulationError, match="no ordinary file"):
        save_run(run, pipe)
    with pytest.raises(SimulationError, match="no ordinary file"):
        save_run(run, "/dev/null")
    written(real, [("list", [])])
    with pytest.raises(SimulationError, match="does not hold a run"):
        load_run(real)


class Mine:
    """A class from elsewhere."""

    def __init__(self) -> None:
        self.seen = {1: [self]}


def test_classes_from_elsewhere_are_named_by_the_caller(tmp_path: Path) -> None:
    run, path = simulation("fifo"), tmp_path / "f"
    run.note = Mine()
    with pytest.raises(SimulationError, match="Mine is no class of copter's frontends"):
        save_run(run, path)
    assert not path.exists()
    save_run(run, path, [Mine])
    with pytest.raises(SimulationError, match="Mine is no class of copter's frontends"):
        load_run(path)
    note = load_run(path, [Mine]).note
    assert isinstance(note, Mine)
    assert note.seen[1][0] is note


@pytest.mark.parametrize("value", [print, lambda: 0, os, type, iter([]), Mine, object()])
def test_what_is_no_data_is_refused_when_it_is_saved(value: object) -> None:
    with pytest.raises(SimulationError):
        Flattener(SavedClasses([Mine])).flatten([value])


def things() -> Iterator[object]:
    """Values of every kind."""
    yield from ([], (), {}, set(), frozenset({(1, "a")}), 3 + 4j, slice(1, None), range(3, 9, 2), bytearray(b"ab"))
    yield from ([1.5] * 20, (2,) * 20, [1 << 70] * 20, [True] * 20, {"a": {(1, 2): None}}, b"x", "\ud800")
    yield from (np.float32(1.5), np.str_("ä"), np.datetime64("2020-01-01"), np.zeros((2, 0)), np.array(["a", "bc"]))
    yield np.asfortranarray(np.arange(6.0).reshape(2, 3))
    yield np.array([1, "a", None], dtype=object)
    yield np.arange(5, dtype=np.uint16)[::2]
    yield from (np.array([np.nan] * 30 + [-0.0] * 30), np.repeat([0, 1 << 40], 50), np.ones((40, 2)), [None] * 20)
    yield from ([f"t{n % 3}" for n in range(40)], [(n, 0.5 * n) for n in range(40)], {f"k{n}": n for n in range(40)})
    yield from (list(range(0, 400, 3)), [-(1 << 63), (1 << 63) - 1] * 20, [True, False] * 20, [None, 1.0] * 20)


@pytest.mark.parametrize("value", list(things()), ids=repr)
def test_values_come_back_as_they_were(value: Any) -> None:
    back = again([value])[0]
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype
        assert (value.ndim < 2) or back.flags.f_contiguous == value.flags.f_contiguous
        np.testing.assert_array_equal(back, value)
    else:
        assert back == value


def again(value: object) -> Any:
    """A value written and read."""
    data = b"".join(encode(Flattener(SavedClasses([Mine])).flatten(value)))
    return Rebuilder(Reader(data, "values").whole(), SavedClasses([Mine]), len(data)).rebuild()


def test_identities_and_cycles_come_back() -> None:
    shared: list[Any] = [1]
    cycle: dict[str, Any] = {"a": shared, "b": (shared, Mine())}
    cycle["self"] = [cycle]
    back = again(cycle)
    assert back["a"] is back["b"][0]
    assert back["self"][0] is back
    rng = np.random.default_rng(3)
    copy = again({"one": rng, "two": rng})
    assert copy["one"] is copy["two"]
    assert copy["one"].random() == np.random.default_rng(3).random()
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    again(deep)


def test_models_sessions_and_templates_stay_together() -> None:
    model = copter.Model()
    model.add_resources("g", 4)
    template = model.add_template({"g": [1, 2]})
    model.add_requests(["p", "q"], [[1.0, 2.0], [1.0, 2.0]], template=template)
    session = copter.Session(model)
    other = copter.Model()
    before = session.solve().objective
    back = again({"template": template, "model": model, "session": session, "other": other, "too": [model]})
    assert back["session"].model is back["model"] is back["too"][0]
    assert back["model"].templates == (back["template"],)
    assert back["other"] is not back["model"]
    back["model"].add_request("r", [9.0, 9.0], template=back["template"])
    assert back["session"].solve().objective > before


def test_an_array_of_records_is_saved_by_its_fields() -> None:
    table = np.zeros(3, dtype=[("rate", "f8"), ("column", "i8"), ("stale", "?")])
    table["rate"], table["column"], table["stale"] = [0.5, np.nan, np.inf], [1, -1, 7], [True, False, True]
    found = array_from(_plain_array(table))
    assert found.dtype == table.dtype
    for name in table.dtype.names:
        np.testing.assert_array_equal(found[name], table[name])
    fields = _plain_array(table)
    fields["rate"] = fields["rate"][:2]
    with pytest.raises(SimulationError, match="do not have one shape"):
        array_from(fields)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_runs_saved_before_are_found(name: str) -> None:
    """They were an object by attributes, with what is internal today among these."""
    values = {"tolerance": 1e-4, "presolve": False, "threads": 2}
    found = Rebuilder(packed([("object", name, list(values), list(values.values()))], [0]), SavedClasses(), 1000)
    assert found.rebuild() == Settings(tolerance=1e-4, threads=2, internals=Internals(presolve=False))


def test_settings_come_back_with_what_is_internal() -> None:
    settings = Settings(threads=2, internals=Internals(purify=False, hand_over_s=3.0))
    assert again([settings, settings]) == [settings, settings]


def test_the_note_of_a_saved_run_has_the_fields_that_files_have() -> None:
    """A field more or less would refuse the files there are."""
    assert RunNote.__slots__ == ("asked", "workload", "inputs")
    assert RunInputs.__slots__ == ("cluster", "model", "profiles")
