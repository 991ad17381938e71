"""A Slurm of fake nodes for tests and measurements: ``cluster.sh`` as a context, and its commands as methods."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("cluster.sh")
LIVE = "SchedulerParameters=bf_interval=1,bf_continue,bf_window=1440,sched_interval=2"
FROZEN = "SchedulerParameters=sched_interval=-1,bf_interval=-1,defer"
TWO_KINDS = "n[1-2] 8 8000 a100 4 a100,fast\nt[1-2] 4 4000 t4 2 t4,slow"


class NoCluster(RuntimeError):
    """A cluster that could not be started, or a command that it refused."""


class FakeCluster:
    """A running Slurm; as a context it is stopped at the end.

    Parameters
    ----------
    nodes, partitions, extra : str
        As NODES, PARTITIONS and EXTRA of ``cluster.sh``; empty for its defaults.
    rest, accounts : bool
        Whether slurmrestd and slurmdbd run too.
    root : str
        Folder with another release's packages.
    more : Mapping of str to str
        Further variables for ``cluster.sh``.
    """

    def __init__(
        self, nodes: str = TWO_KINDS, partitions: str = "", extra: str = "", rest: bool = False, accounts: bool = False,
        root: str = "", more: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.folder = Path(tempfile.mkdtemp(prefix="copter-slurm-"))
        self.folder.chmod(0o755)  # slurmrestd runs as nobody
        self.state, self.root = self.folder / "state", root
        self._given = {"REST": str(int(rest)), "ACCOUNTS": str(int(accounts)), "ROOT": root, **(more or {})}
        self._given |= {name: value for name, value in (("NODES", nodes), ("PARTITIONS", partitions)) if value}
        self._given["EXTRA"] = extra if "SchedulerParameters" in extra else f"{LIVE}\n{extra}"
        self.env: dict[str, str] = {}

    def __enter__(self) -> FakeCluster:
        """Start the cluster; one that does not start leaves nothing behind."""
        try:
            self._script("start", timeout_s=120)
        except BaseException:
            self.__exit__()
            raise
        lines = (self.state / "env").read_text().splitlines()
        told = dict(line.removeprefix("export ").split("=", 1) for line in lines)
        self.env = {**os.environ, **told, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the cluster and remove its folder."""
        self._script("stop", timeout_s=60)
        if self.root:
            shutil.rmtree(self.root + str(self.state), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _script(self, command: str, *names: str, timeout_s: float = 60.0) -> None:
        done = subprocess.run(
            [str(SCRIPT), command, str(self.state), *names], env={**os.environ, **self._given}, timeout=timeout_s,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise NoCluster(done.stderr.strip())

    @property
    def version(self) -> str:
        """The release, such as 22.05."""
        return ".".join(self.env["COPTER_SLURM_VERSION"].split(".")[:2])

    @property
    def address(self) -> str:
        """The address of slurmrestd."""
        return self.env["COPTER_SLURM_REST"]

    def down(self, *names: str, kill: bool = False) -> None:
        """End slurmctld, slurmrestd, slurmdbd or nodes by name."""
        self._script("down", *(["-9"] if kill else []), *names)

    def up(self, *names: str) -> None:
        """Start them again."""
        self._script("up", *names)
        if "slurmctld" in names:
            self.until(lambda: "UP" in self.run("scontrol", "ping"), "slurmctld to answer")

    def run(self, *command: str, stdin: str | None = None, as_user: str | None = None) -> str:
        """Run one of Slurm's commands and return what it prints; NoCluster if it fails."""
        words = list(command)
        if self.root:
            words = ["chroot", self.root, "env", f"SLURM_CONF={self.env['SLURM_CONF']}", *words]
        elif as_user is not None:
            words = ["setpriv", "--reuid", as_user, "--regid", as_user, "--clear-groups", *words]
        done = subprocess.run(
            words, env=self.env, input=stdin or "", capture_output=True, text=True, timeout=60, cwd="/tmp"
        )
        if done.returncode:
            raise NoCluster(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def submit(self, *options: str, seconds: float = 600.0, script: str = "", as_user: str | None = None) -> str:
        """Submit a job that sleeps, or a script; return its id."""
        text = script or f"#!/bin/sh\nexec sleep {seconds}\n"
        words = ("sbatch", "--parsable", "-o", "/dev/null", "-D", "/tmp", "-J", "job", *options)
        return self.run(*words, stdin=text, as_user=as_user).strip().split(";")[0]

    def json(self, *command: str) -> Any:
        """Return what a command prints with --json."""
        return json.loads(self.run(*command, "--json"))

    def states(self) -> dict[str, tuple[str, str, str]]:
        """Return each job's state, reason and nodes; waiting tasks of an array share one line."""
        found = {}
        for line in self.run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%T|%r|%N").splitlines():
            name, state, reason, nodes = line.split("|")
            found[name] = (state, reason, nodes)
        return found

    def until(self, true: Any, what: str, seconds: float = 20.0) -> None:
        """Wait until something is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if true():
                    return
            except NoCluster:
                pass
            time.sleep(0.1)
        raise NoCluster(f"waited {seconds:g} s for {what}")

    def running(self, *jobs: str, seconds: float = 20.0) -> None:
        """Wait until jobs run."""
        self.until(lambda: all(self.states()[job][0] == "RUNNING" for job in jobs), f"{jobs} to run", seconds)

    def configure(self, old: str, new: str) -> None:
        """Change a line of slurm.conf and let the cluster read it."""
        path = self.state / "slurm.conf"
        path.write_text(path.read_text().replace(old, new))
        self.run("scontrol", "reconfigure")

    def freeze(self) -> None:
        """Let Slurm start nothing."""
        self.configure(LIVE, FROZEN)

    def thaw(self) -> None:
        """Let Slurm start jobs again; slurmctld is started anew, as backfill does not wake from an interval of -1."""
        path = self.state / "slurm.conf"
        path.write_text(path.read_text().replace(FROZEN, LIVE))
        self.down("slurmctld")
        self.up("slurmctld")

    def token(self, user: str = "root", seconds: int = 3600) -> str:
        """Return a JSON web token for a user."""
        return self.run("scontrol", "token", f"username={user}", f"lifespan={seconds}").strip().split("=", 1)[1]


def why_not(accounts: bool = False) -> str:
    """Return why no cluster can be started here; empty if one can."""
    done = subprocess.run([str(SCRIPT), "check"], capture_output=True, text=True)
    if done.returncode:
        return done.stdout.strip() or done.stderr.strip()
    absent: Sequence[str] = [
        each for each in ("slurmdbd", "mariadbd") if accounts and not shutil.which(each, path="/usr/sbin:/usr/bin")
    ]
    return f"missing: {', '.join(absent)} (ACCOUNTS=1 tests/slurm/cluster.sh install)" if absent else ""
