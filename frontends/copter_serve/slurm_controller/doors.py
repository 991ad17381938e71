"""Ways to talk to a Slurm: its commands, or slurmrestd with a JSON web token; one update a job."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from copter_serve.slurm_controller.profiles import asked_before
from copter_serve.slurm_controller.reading import ClusterNow, cluster_now
from copter_serve.views import ViewError
from copter_serve.views.documents import MOST_BYTES, BlindError, parse_json
from copter_serve.views.slurm_text import errors_of, number

SKEW_S = 60.0  # age at which the difference of the clocks is measured again
PATIENCE_S = 20.0  # longest wait for one command or answer
APIS = ("v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", "v0.0.39", "v0.0.38")  # newest first


class RefusedError(ViewError):
    """An update that Slurm refused; the job is as it was."""


@dataclass(frozen=True, slots=True)
class Change:
    """An update of a waiting job; what is None stays as it is.

    Attributes
    ----------
    begin_s : int
        Unix time on the cluster's clock before which Slurm does not start it.
    nodes : tuple of str, optional
        Required nodes; empty for none.
    gpus : str, optional
        GPUs a node, such as "a100:4" or "4".
    comment : str, optional
    """

    begin_s: int
    nodes: tuple[str, ...] | None = None
    gpus: str | None = None
    comment: str | None = None


class Door(ABC):
    """What the controller needs of a Slurm.

    Parameters
    ----------
    clock : callable
        This machine's Unix time. The cluster's clock is asked for, so that the two may differ.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.skew_s = 0.0  # cluster's clock less this machine's
        self._measured_s: float | None = None

    @abstractmethod
    def documents(self) -> tuple[list[Any], list[Any]]:
        """Return the jobs' and the nodes' documents as Slurm gives them; BlindError if it does not answer."""

    @abstractmethod
    def update(self, job: str, change: Change) -> None:
        """Change a waiting job in one update; RefusedError if Slurm refuses it, BlindError if it does not answer."""

    @abstractmethod
    def server_s(self) -> float | None:
        """Return slurmctld's Unix time; None if it does not tell."""

    @abstractmethod
    def text(self, *words: str) -> str:
        """Return what a command of Slurm's prints; empty if there are no commands, or it is refused."""

    def now_s(self) -> float:
        """Return the time on the cluster's clock."""
        here = self._clock()
        if self._measured_s is None or abs(here - self._measured_s) > SKEW_S:
            told = self.server_s()
            self._measured_s = self._clock()
            skew = 0.0 if told is None else told - self._measured_s
            self.skew_s = skew if abs(skew) > 2.0 else 0.0  # slurmctld tells whole seconds
        return self._clock() + self.skew_s

    def read(self) -> ClusterNow:
        """Return nodes and jobs; BlindError if Slurm does not answer."""
        return cluster_now(*self.documents(), self.now_s())

    def start(self, job: str, nodes: Sequence[str], gpus: str | None, comment: str | None = None) -> None:
        """Let a waiting job start now on some nodes, with some GPUs a node (None: as it asked)."""
        self.update(job, Change(int(self.now_s()), tuple(nodes), gpus, comment))

    def postpone(self, job: str, seconds: int) -> None:
        """Let Slurm start a job by itself no sooner than so many seconds from now."""
        self.update(job, Change(int(self.now_s()) + seconds))

    def take_back(self, job: str, seconds: int, nodes: Sequence[str], gpus: str | None, comment: str) -> None:
        """Undo a start that was not made: the job's own nodes, GPUs and comment, and a new lease."""
        self.update(job, Change(int(self.now_s()) + seconds, tuple(nodes), gpus, comment))

    def release(self, job: str) -> None:
        """Let Slurm start a job as soon as it can."""
        self.update(job, Change(int(self.now_s())))


class Commands(Door):
    """Slurm's commands on this machine."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        for name in ("squeue", "sinfo", "scontrol"):
            if shutil.which(name) is None:
                raise ViewError(
                    f"the command {name} is not here: install Slurm's client, give --rest, or give "
                    "files to `copter shadow --slurm SQUEUE SINFO`"
                )
        self._nodes: tuple[str, ...] | None = None

    def _run(self, *words: str) -> str:
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as error:
            raise BlindError(f"{words[0]}: no answer within {PATIENCE_S:g} s") from error
        if done.returncode:
            told = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
            kind = BlindError if _is_away(told) else RefusedError
            raise kind(f"{' '.join(words[:3])}: {told}")
        return done.stdout

    def documents(self) -> tuple[list[Any], list[Any]]:
        """Return the jobs' and the nodes' documents."""
        jobs = _listed(parse_json("squeue --json", self._run("squeue", "--json", "--all").encode()), "jobs", "squeue")
        if self._nodes is None:  # 22.05 prints nodes by sinfo; later releases summaries there, and nodes by scontrol
            told = parse_json("sinfo --json", self._run("sinfo", "--json").encode())
            self._nodes = ("sinfo", "--json") if "nodes" in told else ("scontrol", "show", "node", "--json")
        name = " ".join(self._nodes)
        return jobs, _listed(parse_json(name, self._run(*self._nodes).encode()), "nodes", name)

    def server_s(self) -> float | None:
        """Return slurmctld's Unix time, which sdiag tells."""
        found = re.search(r"sdiag output at .*\((\d+)\)", self.text("sdiag"))
        return None if found is None else float(found[1])

    def text(self, *words: str) -> str:
        """Return what a command prints; empty if it is refused or absent."""
        try:
            return self._run(*words)
        except (ViewError, FileNotFoundError):
            return ""

    def update(self, job: str, change: Change) -> None:
        """Change a waiting job by `scontrol update`."""
        words = [f"JobId={job}", f"StartTime={time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(change.begin_s))}"]
        if change.nodes is not None:
            words.append(f"ReqNodeList={','.join(change.nodes)}")
        if change.gpus is not None:
            words.append(f"TresPerNode=gres:gpu:{change.gpus}")
        if change.comment is not None:
            words.append(f"Comment={change.comment}")
        self._run("scontrol", "update", *words)


class Rest(Door):
    """A slurmrestd, with a JSON web token of a user.

    Parameters
    ----------
    address : str
    user : str
    token : callable
        Returns the present token: tokens end.
    api : str
        Version such as "v0.0.38"; the newest that answers if empty.
    """

    def __init__(
        self, address: str, user: str, token: Callable[[], str], api: str = "", clock: Callable[[], float] = time.time
    ) -> None:  # fmt: skip
        super().__init__(clock)
        self.address, self.user, self.token = address.rstrip("/"), user, token
        self._names: set[str] = set()
        self._own_excluded: dict[str, str] = {}
        self.api = api or self._found()

    def _found(self) -> str:
        why: Exception | None = None
        for api in APIS:
            try:
                self._ask("GET", f"/slurm/{api}/ping")
            except (RefusedError, BlindError) as error:
                why = error
                if isinstance(error, BlindError):
                    break
            else:
                return api
        raise BlindError(f"{self.address}: no version of the API from {APIS[-1]} to {APIS[0]} answers: {why}")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.address + path, None if body is None else json.dumps(body).encode(), method=method,
            headers={
                "X-SLURM-USER-NAME": self.user, "X-SLURM-USER-TOKEN": self.token(), "Content-Type": "application/json",
            },
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                found = parse_json(path, answer.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            told = _told(error.read(10_000))
            kind = BlindError if error.code in (502, 503, 504) or _is_away(told) else RefusedError
            raise kind(f"{self.address}{path}: {error.code} {told}") from error
        except (OSError, ValueError) as error:
            raise BlindError(f"{self.address}{path}: {getattr(error, 'reason', None) or error}") from error
        if told := errors_of(found):
            raise (BlindError if _is_away(told) else RefusedError)(f"{self.address}{path}: {told}")
        return found

    def documents(self) -> tuple[list[Any], list[Any]]:
        """Return the jobs' and the nodes' documents."""
        jobs = self._ask("GET", f"/slurm/{self.api}/jobs")
        nodes = self._ask("GET", f"/slurm/{self.api}/nodes")
        found = _listed(jobs, "jobs", "slurmrestd"), _listed(nodes, "nodes", "slurmrestd")
        if self._is_old:
            self._names = {str(each.get("name")) for each in found[1]}
            for each in found[0]:
                told = "" if asked_before(str(each.get("comment") or "")) else str(each.get("excluded_nodes") or "")
                self._own_excluded.setdefault(str(each.get("job_id")), told)
        return found

    @property
    def _is_old(self) -> bool:
        """Whether the API is 22.05's: it has no required nodes, so that all others are excluded."""
        return self.api <= "v0.0.38"

    def server_s(self) -> float | None:
        """Return slurmctld's Unix time, which /diag tells."""
        try:
            found = self._ask("GET", f"/slurm/{self.api}/diag").get("statistics") or {}
        except RefusedError:
            return None
        return number(found.get("req_time"))

    def text(self, *words: str) -> str:
        """Return nothing: no command is at hand over REST."""
        return ""

    def update(self, job: str, change: Change) -> None:
        """Change a waiting job by one request."""
        old = self._is_old
        begin: Any = f"uts{change.begin_s}" if old else {"set": True, "infinite": False, "number": change.begin_s}
        fields: dict[str, Any] = {"begin_time": begin}
        if change.nodes is not None and old:
            rest = ",".join(sorted(self._names - set(change.nodes)))
            fields["exclude_nodes"] = rest if change.nodes else self._own_excluded.get(job, "")
        elif change.nodes is not None:
            fields["required_nodes"] = list(change.nodes)
        if change.gpus is not None:
            fields["gres" if old else "tres_per_node"] = f"{'gres:' if old else 'gres/'}gpu:{change.gpus}"
        if change.comment is not None:
            fields["comment"] = change.comment
        self._ask("POST", f"/slurm/{self.api}/job/{job}", fields)


def _listed(found: Any, name: str, source: str) -> list[Any]:
    if not isinstance(found, dict) or not isinstance(found.get(name), list):
        raise ViewError(f"{source}: its answer has no list {name!r}")
    if wrong := errors_of(found):
        raise BlindError(f"{source}: {wrong}")
    return list(found[name])


def _told(answer: bytes) -> str:
    try:
        return errors_of(json.loads(answer)) or answer[:200].decode()
    except ValueError:  # neither JSON nor text
        return repr(answer[:200])


def _is_away(text: str) -> bool:
    """Return whether an error says that slurmctld does not answer, rather than that it refused."""
    words = (
        "unable to contact",
        "connect failure",
        "connection refused",
        "socket timed out",
        "timed out",
        "zero bytes",
    )
    return any(each in text.lower() for each in words)
