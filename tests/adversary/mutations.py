"""Files of every format that is read, ways to damage them, and what a reader may do with what comes out.

A reader either reads a file or raises a CopterError whose message is of one line and not long. Snapshots, journals and
saved runs are checksummed: a damaged one is refused, or (a journal whose end is torn) read as far as it is whole.
"""

from __future__ import annotations

import random
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from copter import CopterError, LinearProgram, Model, Session, Settings, read_lp, read_mps, verify, write_lp, write_mps
from copter.session.playback import Playback
from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.simulator import Simulation, load_run
from copter_frontends.simulator.event_file import read_events
from copter_frontends.simulator.saved_run import save_run
from copter_frontends.simulator.traces.formats import LINE_FORMATS
from copter_frontends.simulator.traces.readers import read_trace
from copter_frontends.simulator.traces.throughput_file import read_throughputs
from copter_frontends.vocabulary import Cluster, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import read_cluster

SLOW_S = 10.0  # of the process's own time, that no file of these sizes takes
LONGEST = 2_000  # characters of an error message
WORDS = (
    b"nan", b"inf", b"-1", b"0", b"1e999", b"1e-999", b"99999999999999999999", b"1_0", b"", b"\x00", b"\xff\xfe", b"'",
    b'"', b"{", b"[", b"&a", b"*a", b"!!python/object:os.system", b"<<", b"- ", b": ", b"\r\n", b"\n", b"\t", b",",
    b"RANGES\n", b"BOUNDS\n", b"RHS\n", b"ENDATA\n", b"MARKER", b"'INTORG'", b"OBJSENSE\n", b"MAX\n", b" FR ", b" SC ",
    b" MI ", b" BV ", b"QUADOBJ\n", b"SOS\n", b"\xf0\x9f\x98\x80", b"1970-01-01 00:00:00", b"x" * 300,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format:
    """A format: files of it, its reader, and whether any change of a file must be refused."""

    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]
    suffix: str = ""
    sealed: bool = False


def mps_files() -> list[bytes]:
    """Free and fixed form, ranges, all kinds of bounds, integers; written by hand and by write_mps."""
    by_hand = b"""NAME          T
OBJSENSE
    MAX
ROWS
 N  COST
 L  LIM1
 G  LIM2
 E  MYEQN
COLUMNS
    MARKER    MARKER  'MARKER'  'INTORG'
    X         COST         1.0   LIM1         1.0
    X         LIM2         1.0
    MARKER    MARKER  'MARKER'  'INTEND'
    Y         COST         2.0   LIM1         1.0
    Y         MYEQN       -1.0
    Z         COST        -1.0   MYEQN        1.0
RHS
    RHS       LIM1         4.0   LIM2         1.0
    RHS       MYEQN        7.0   COST         2.5
RANGES
    RNG       LIM1         2.5   MYEQN       -3.0
BOUNDS
 UP BND       X            4.0
 LO BND       Y           -1.0
 UP BND       Y            1.0
 FR BND       Z
ENDATA
"""
    lp = a_program()
    with tempfile.TemporaryDirectory() as folder:
        write_mps(lp, Path(folder, "a.mps"))
        write_mps(lp, Path(folder, "a.mps.gz"))
        return [by_hand, Path(folder, "a.mps").read_bytes(), Path(folder, "a.mps.gz").read_bytes()]


def a_program() -> LinearProgram:
    """Bounds of every kind, whole columns, a constant."""
    rng = np.random.default_rng(0)
    return LinearProgram(
        rng.normal(size=5), rng.normal(size=(3, 5)), row_upper=rng.normal(size=3), col_lower=[-np.inf, 0, 1, -3, 0],
        col_upper=[np.inf, 1, 1, 4, 9], integrality=[False, True, False, True, False], offset=1.5,
    )  # fmt: skip


def lp_files() -> list[bytes]:
    """By hand with every section, and by write_lp."""
    by_hand = b"""\\Problem name: t
Maximize
 obj: 3 x + 2y - 4 z + 5
Subject To
 c1: x + y + z <= 10
 c2: 2 <= x - y
   <= 8
 -4 >= - x - z
 eq: x + y = 4
Bounds
 -inf <= z <= 5
 x <= 40
 w free
General
 x
Binary
 b1 b2
Semi-continuous
 z
End
"""
    lp = a_program()
    with tempfile.TemporaryDirectory() as folder:
        write_lp(lp, Path(folder, "a.lp"))
        write_lp(lp, Path(folder, "a.lp.gz"))
        return [by_hand, Path(folder, "a.lp").read_bytes(), Path(folder, "a.lp.gz").read_bytes()]


def edits(made: Session) -> Session:
    """The session, edited and solved."""
    model = made.model
    model.add_resources("g", 8)
    model.add_resources(("h", 1), 5)
    for request in range(6):
        model.add_request(request, [1.0, 2.0 + request], {"g": [1, 2], ("h", 1): [0, 1]}, integer=request % 2 == 0)
    made.solve_integer()
    model.remove_request(3)
    model.rescale_cost(4, 0.5)
    model.fix(2, 1)
    return made


def snapshots() -> list[bytes]:
    """One of a session that was solved."""
    with tempfile.TemporaryDirectory() as folder:
        edits(Session(Model())).save(Path(folder, "s"))
        return [Path(folder, "s").read_bytes()]


def journals() -> list[bytes]:
    """One that holds every edit since an empty snapshot."""
    return [begun_journal()[1]]


@cache
def begun_journal() -> tuple[bytes, bytes]:
    """A snapshot of an empty session, and a journal of what was edited since."""
    with tempfile.TemporaryDirectory() as folder:
        made = Session(Model(), journal=Path(folder, "j"))
        made.save(Path(folder, "s"))
        edits(made).journal(None)
        return Path(folder, "s").read_bytes(), Path(folder, "j").read_bytes()


def tapes() -> list[bytes]:
    """A session of some rounds, with answers and a plan."""
    with tempfile.TemporaryDirectory() as folder:
        made = Session(Model())
        made.record(Path(folder, "t"))
        edits(made).solve()
        made.model.set_count("g", 5.0)
        made.solve()
        made.record(None)
        return [Path(folder, "t").read_bytes()]


def read_tape(path: Path) -> object:
    """All rounds, played but not solved; the verifier refuses what is refused here, or judges it."""
    with suppress(verify.Unusable):
        list(verify.verify(path))
    return len(list(Playback(path)))


def runs() -> list[bytes]:
    """A simulation in its middle."""
    cluster = Cluster.of({"t4": (2, 4)})
    model = GoodputModel(configurations_of(cluster))
    policy = POLICIES["fifo"].build(cluster, model, "full", Settings(threads=1))
    jobs = [Job(f"j{i}", "cifar10", 50.0 * i) for i in range(3)]
    run = Simulation(cluster, jobs, policy, model, policy.round_s, deadline_s=1e6)
    run.step()
    with tempfile.TemporaryDirectory() as folder:
        save_run(run, Path(folder, "r"))
        return [Path(folder, "r").read_bytes()]


def clusters() -> list[bytes]:
    """Two in YAML."""
    return [
        b"types:\n  - {name: a100, gpus_per_node: 8, nodes: 2}\n  - {name: t4, gpus_per_node: 4, nodes: 6}\n",
        b"types:\n- name: v100\n  gpus_per_node: 4\n  nodes: 1\n",
    ]


def events() -> list[bytes]:
    """What happens to a cluster, listed and drawn."""
    return [
        b"events:\n  - {time_s: 3600, what: fail, gpu_type: t4, nodes: [t4-0]}\n"
        b"  - {time_s: 7200, what: repair, gpu_type: t4, nodes: [t4-0]}\n"
        b"  - {time_s: 9000, what: add, gpu_type: t4, count: 2}\n"
        b"random_failures: {hours: 4, mean_hours_between: 50, mean_repair_hours: 2, seed: 0}\n"
    ]


def traces() -> list[bytes]:
    """A few lines of every format, of values that most columns take."""
    made = [
        b"timestamp,duration,num_gpus,gpu_time,cluster\n"
        b"2017-10-03 11:04:05,600,2,1200,a\n2017-10-03 12:04:05,900,1,900,b\n",
        b"name,time,application,num_replicas,batch_size\nj0,0,cifar10,1,128\nj1,60,bert,2,12\n",
    ]
    for each in LINE_FORMATS:
        header, count = ",".join(each.columns).encode(), len(each.columns)
        values = (b"1", b"static", b"2020-01-01 00:00:00")
        made += [header + b"\n" + b",".join([value] * count) + b"\n" for value in values]
    return made


def throughputs() -> list[bytes]:
    """Steps per second."""
    return [b"job_type,scale_factor,gpu_type,steps_per_s\nresnet,1,v100,3.5\nresnet,2,v100,6.5\n"]


def read_journal(path: Path) -> object:
    """The session that the empty snapshot and a journal make."""
    snapshot = path.with_name("snapshot-of-journal")
    snapshot.write_bytes(begun_journal()[0])
    made = Session.load(snapshot, journal=path)
    made.journal(None)
    return made


FORMATS = {
    each.name: each
    for each in (
        Format("MPS", mps_files, read_mps, ".mps"),
        Format("LP", lp_files, read_lp, ".lp"),
        Format("snapshot", snapshots, lambda path: Session.load(path, journal=None), sealed=True),
        Format("journal", journals, read_journal),
        Format("tape", tapes, read_tape),
        Format("saved run", runs, load_run, sealed=True),
        Format("cluster YAML", clusters, read_cluster, ".yaml"),
        Format("events YAML", events, lambda path: read_events(path, Cluster.of({"t4": (6, 4)})), ".yaml"),
        Format("trace", traces, read_trace, ".csv"),
        Format("throughputs", throughputs, lambda path: read_throughputs(path, "v100"), ".csv"),
    )
}


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    """The sound files of a format."""
    return tuple(FORMATS[name].seeds())


def mutated(rng: random.Random, content: bytes) -> bytes:
    """The file with a few accidents: bits, bytes, words, lines, numbers; cut off, doubled, put together wrongly."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at, to = sorted((rng.randint(0, len(content)), rng.randint(0, len(content))))
        kind = rng.randrange(9)
        if kind == 0 and content:
            place = rng.randrange(len(content))
            content = content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
        elif kind == 1:
            content = content[:at] + rng.choice(WORDS) + content[at:]
        elif kind == 2:
            content = content[:at]
        elif kind == 3:
            content = content[:at] + content[min(to, at + rng.randrange(1, 40)) :]
        elif kind == 4:
            content = content[:at] + content[at : at + 200] * rng.randrange(2, 5) + content[at + 200 :]
        elif kind == 5:
            content = content[:at] + rng.randbytes(rng.randrange(1, 9)) + content[to if rng.random() < 0.1 else at :]
        else:
            content = by_lines(rng, content, kind)
    return content


def by_lines(rng: random.Random, content: bytes, kind: int) -> bytes:
    """A line moved, a word changed, or two words exchanged."""
    lines = content.split(b"\n")
    line = rng.randrange(len(lines))
    words = lines[line].split(b" ")
    word = rng.randrange(len(words))
    if kind == 6:
        moved = lines.pop(line)
        lines.insert(rng.randrange(len(lines) + 1), moved)
    elif kind == 7:
        words[word] = rng.choice(WORDS)
        lines[line] = b" ".join(words)
    else:
        other = rng.randrange(len(words))
        words[word], words[other] = words[other], words[word]
        lines[line] = b" ".join(words)
    return b"\n".join(lines)


def verdict(name: str, content: bytes, folder: Path) -> str | None:
    """What is wrong with how a format's reader takes a file; None if it reads it or refuses it as it should."""
    file_format = FORMATS[name]
    path = folder / f"file{file_format.suffix}"
    path.write_bytes(content)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file_format.read(path)
    except CopterError as error:
        said = str(error)
        if len(said) > LONGEST:
            return f"a message of {len(said)} characters"
        return None if said.strip() and "\n" not in said.strip() else f"a message of other than one line: {said!r}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:200]}"
    if time.process_time() - began > SLOW_S:
        return f"{time.process_time() - began:.0f} s"
    return "damage went unnoticed" if file_format.sealed and content not in seeds(name) else None
