"""The three-layer throughput database: server, type, theory (section 3.3; HP6)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from os import PathLike, fspath

from copter_frontends.policies.hops.errors import ThroughputDatabaseError, ThroughputError
from copter_frontends.policies.hops.iteration_time import IterationTimes

VERSION = 1  # format of the database's file
SCHEMA = """
CREATE TABLE IF NOT EXISTS measured (
    job TEXT NOT NULL, gpu_type TEXT NOT NULL, server TEXT NOT NULL, spread INTEGER NOT NULL, count INTEGER NOT NULL,
    observations INTEGER NOT NULL, per_gpu REAL NOT NULL,
    PRIMARY KEY (job, gpu_type, server, spread, count)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS theory (
    job TEXT NOT NULL, gpu_type TEXT NOT NULL, parts TEXT NOT NULL, PRIMARY KEY (job, gpu_type)) WITHOUT ROWID;
"""
ANY_SERVER = ""  # server name in the type layer's rows
MOST_WEIGHT = 50  # largest weight of a mean, in observations, so that it follows drift


class ThroughputDatabase:
    """Per-GPU throughputs of jobs, on servers and on types, and the parts of their iterations.

    Every record of the server layer is also in the type layer. Records on one server are kept by number of GPUs,
    distributed ones by number of servers. Every write is a transaction, so after a crash the last complete one is
    there.

    Parameters
    ----------
    path : path
        An SQLite file, made if absent; by default a database in memory.

    Raises
    ------
    ThroughputDatabaseError
        If the file is not such a database, is damaged, or has a newer version. It is not changed.
    """

    def __init__(self, path: str | PathLike[str] = ":memory:") -> None:
        self.path = fspath(path)
        self.version = 0
        try:
            self._sql = sqlite3.connect(self.path, isolation_level=None)
            with self._reported("be opened"):
                self._check()
                self._sql.execute("PRAGMA journal_mode=WAL")
                self._sql.execute("PRAGMA synchronous=NORMAL")
                self._sql.executescript(SCHEMA + f"PRAGMA user_version={VERSION};")
        except sqlite3.Error as error:
            raise ThroughputDatabaseError(f"{self.path}: cannot be opened: {error}; check the path") from error
        except ThroughputDatabaseError:
            self._sql.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._sql.close()

    # Writing ------------------------------------------------------------------------------------------------------

    def record(self, job: str, gpu_type: str, servers: tuple[str, ...], gpus: int, per_gpu: float) -> None:
        """Record a measured throughput of `gpus` GPUs on these servers, in samples per second per GPU.

        Raises
        ------
        ThroughputError
            If it is zero, negative or not finite; nothing is written.
        ThroughputDatabaseError
            If the file cannot be written.
        """
        if not (isfinite(per_gpu) and per_gpu > 0):
            raise ThroughputError(
                f"job {job!r} on {gpus} {gpu_type!r} GPUs: measured {per_gpu} samples per second per GPU, must be "
                "finite and > 0; the observation is not recorded"
            )
        spread = len(servers) > 1
        count = len(servers) if spread else gpus
        with self._transaction():
            for server in (*servers, ANY_SERVER):
                self._sql.execute(
                    "INSERT INTO measured VALUES (?, ?, ?, ?, ?, 1, ?) ON CONFLICT DO UPDATE SET "
                    "per_gpu = per_gpu + (excluded.per_gpu - per_gpu) / MIN(observations + 1, ?), "
                    "observations = observations + 1",
                    (job, gpu_type, server, spread, count, per_gpu, MOST_WEIGHT),
                )
        self.version += 1

    def set_theory(self, job: str, gpu_type: str, parts: IterationTimes) -> None:
        """Write the profiled parts of an iteration."""
        with self._transaction():
            self._sql.execute(
                "INSERT OR REPLACE INTO theory VALUES (?, ?, ?)", (job, gpu_type, json.dumps(parts.to_dict()))
            )
        self.version += 1

    def forget(self, job: str) -> None:
        """Drop all records of a job."""
        with self._transaction():
            self._sql.execute("DELETE FROM measured WHERE job = ?", (job,))
            self._sql.execute("DELETE FROM theory WHERE job = ?", (job,))
        self.version += 1

    # Reading ------------------------------------------------------------------------------------------------------

    def all_measured(self) -> Iterator[tuple[str, str, str, bool, int, int, float]]:
        """Yield every record: job, GPU type, server (ANY_SERVER for the type layer), spread, count, observations,
        rate per GPU.
        """
        with self._reported("be read"):
            for job, kind, server, spread, count, observations, per_gpu in self._sql.execute("SELECT * FROM measured"):
                yield job, kind, server, bool(spread), count, observations, per_gpu

    def on_server(self, job: str, gpu_type: str, server: str, gpus: int, nodes: int) -> float | None:
        """Return the server layer's mean per-GPU throughput on this server; None without a record."""
        return self._measured(job, gpu_type, server, gpus, nodes)

    def on_type(self, job: str, gpu_type: str, gpus: int, nodes: int) -> float | None:
        """Return the type layer's mean per-GPU throughput on the type; None without a record."""
        return self._measured(job, gpu_type, ANY_SERVER, gpus, nodes)

    def theory(self, job: str, gpu_type: str) -> IterationTimes | None:
        """Return the profiled parts of a job's iteration on a GPU type (theory layer); None if never profiled.

        Raises
        ------
        ThroughputDatabaseError
            If the database cannot be read.
        """
        with self._reported("be read"):
            row = self._sql.execute(
                "SELECT parts FROM theory WHERE job = ? AND gpu_type = ?", (job, gpu_type)
            ).fetchone()
            return None if row is None else IterationTimes.from_dict(json.loads(row[0]))

    def observations(self, job: str) -> int:
        """Return the number of a job's observations in the type layer."""
        with self._reported("be read"):
            row = self._sql.execute(
                "SELECT COALESCE(SUM(observations), 0) FROM measured WHERE job = ? AND server = ''", (job,)
            ).fetchone()
        return int(row[0])

    # Inside -------------------------------------------------------------------------------------------------------

    def _measured(self, job: str, gpu_type: str, server: str, gpus: int, nodes: int) -> float | None:
        with self._reported("be read"):
            row = self._sql.execute(
                "SELECT per_gpu FROM measured "
                "WHERE job = ? AND gpu_type = ? AND server = ? AND spread = ? AND count = ?",
                (job, gpu_type, server, nodes > 1, nodes if nodes > 1 else gpus),
            ).fetchone()
        return None if row is None else float(row[0])

    def _check(self) -> None:
        result = self._sql.execute("PRAGMA quick_check").fetchone()[0]
        version = int(self._sql.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in self._sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if result != "ok":
            raise ThroughputDatabaseError(f"{self.path}: the throughput database is damaged ({result}); {MEND}")
        if version > VERSION:
            raise ThroughputDatabaseError(f"{self.path}: version {version} is newer than this program's {VERSION}")
        if tables and not {"measured", "theory"} <= tables:
            raise ThroughputDatabaseError(f"{self.path}: an SQLite file, but no throughput database; {MEND}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._reported("be written"):
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._sql.execute("ROLLBACK")
                raise
            self._sql.execute("COMMIT")

    @contextmanager
    def _reported(self, action: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, json.JSONDecodeError, KeyError) as error:
            raise ThroughputDatabaseError(
                f"{self.path}: the throughput database cannot {action}: {error}; {MEND}"
            ) from error


MEND = "the file is left as it is: restore a copy, or give another path to start afresh"
