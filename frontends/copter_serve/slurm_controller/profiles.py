"""What is known of a job's speed: from its comment, from a file of profiles, and from what ran before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from copter_serve.queues import QueueError
from copter_serve.slurm_controller.reading import JobNow

MARK = "copter:"  # what the comment of a job that opts in begins with
ASKED = "asked"  # word that the controller adds while it waits for a start: the GPUs that the job had asked for
MOST_GPUS = 1024
MEMORY = 0.3  # weight of the newest run in what is learned


class ProfileError(QueueError):
    """A comment or a profile file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Sizes and speeds of a job.

    Attributes
    ----------
    app : str
        Jobs of one name learn from each other; the user's name if there is none.
    sizes : tuple of int
        Numbers of GPUs a node with which it may run; empty for the size it asked for.
    seconds : float
        Run time on the asked size and on a GPU of speed 1; nan if not told.
    rate : float
        Exponent of the speed-up: g GPUs are g ** rate as fast as one.
    speeds : Mapping of str to float
        Speed of each GPU type; 1 for others.
    """

    app: str = ""
    sizes: tuple[int, ...] = ()
    seconds: float = math.nan
    rate: float = 1.0
    speeds: Mapping[str, float] = field(default_factory=dict)


def parsed(comment: str, profiles: Mapping[str, Profile] | None = None) -> Profile | None:
    """Return the profile that a comment tells; None for a comment that is not copter's.

    The comment is "copter: app=NAME sizes=1-8 seconds=600 rate=0.9 speed=a100:3,t4:1", each word optional. What it does
    not say is taken from the file's profile of the same application.

    Raises
    ------
    ProfileError
        For a word that cannot be read.
    """
    text = comment.strip()
    if not text.startswith(MARK):
        return None
    words = dict(_pair(word) for word in text[len(MARK) :].split())
    words.pop(ASKED, None)
    app = words.pop("app", "")
    known = (profiles or {}).get(app, Profile(app))
    return _changed(replace(known, app=app), words, f"comment {comment!r}")


def asking(comment: str, gpus: int) -> str:
    """Return a comment that says that a start was asked for, so that another controller can take it back."""
    return f"{comment.strip() or MARK} {ASKED}={gpus}"


def asked_before(comment: str) -> tuple[str, int] | None:
    """Return the comment and the GPUs as they were before a start was asked for; None if none was."""
    before, mark, told = comment.rpartition(f" {ASKED}=")
    if not mark or not told.isdecimal():
        return None
    return ("" if before == MARK else before), int(told)


def of_file(document: Any, path: str) -> dict[str, Profile]:
    """Return the profiles of a parsed YAML file: for each application sizes, seconds, rate and speeds."""
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        raise ProfileError(f"{path}: give a mapping of applications, each with sizes, seconds, rate, speed")
    return {
        str(app): _changed(Profile(str(app)), {str(key): value for key, value in words.items()}, f"{path}: {app}")
        for app, words in document.items()
    }


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise ProfileError(f"{word!r} is not NAME=VALUE; a comment is like 'copter: app=train sizes=1-8 rate=0.9'")
    return name, value


def _changed(profile: Profile, words: Mapping[str, Any], where: str) -> Profile:
    known: dict[str, Any] = {}
    for name, value in words.items():
        try:
            if name == "sizes":
                known["sizes"] = _sizes(str(value))
            elif name in ("seconds", "rate"):
                known[name] = _positive(value)
            elif name == "speed":
                pairs = (
                    value.items() if isinstance(value, dict) else (each.split(":") for each in str(value).split(","))
                )
                known["speeds"] = {str(kind): _positive(speed) for kind, speed in pairs}
            else:
                raise ProfileError(f"{where}: unknown word {name!r}; there are app, sizes, seconds, rate and speed")
        except ValueError as error:
            raise ProfileError(f"{where}: {name}={value!r} cannot be read: {error}") from error
    return replace(profile, **known)


def _positive(value: Any) -> float:
    found = float(value)
    if not (0.0 < found < math.inf):
        raise ValueError("it must be a number above zero")
    return found


def _sizes(text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for each in text.strip("[]").split(","):
        first, _, last = each.strip().partition("-")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= MOST_GPUS:
            raise ValueError(f"sizes are whole numbers from 1 to {MOST_GPUS}")
        found.update(
            range(low, high + 1) if high - low < 3 else [low, *(2**k for k in range(20) if low < 2**k < high), high]
        )
    return tuple(sorted(found))


class Estimates:
    """Run times of jobs: told ones, or else time limits, corrected by what ran."""

    def __init__(self) -> None:
        self.ratio: dict[tuple[str, str], float] = {}  # run time by told or limited time, by application and GPU type
        self._counted: dict[tuple[str, str], int] = {}

    def seconds(self, job: JobNow, profile: Profile, kind: str, gpus: int) -> float:
        """Return the run time that is expected on some GPUs of a type."""
        told = self._told(job, profile, kind, gpus)
        name = profile.app or job.user
        return told * self.ratio.get((name, kind), self.ratio.get((name, ""), 1.0))

    @staticmethod
    def _told(job: JobNow, profile: Profile, kind: str, gpus: int) -> float:
        whole = profile.seconds if not math.isnan(profile.seconds) else job.limit_s
        grown: float = (max(gpus, 1) / max(job.gpus, 1)) ** profile.rate
        return whole / (grown * profile.speeds.get(kind, 1.0))

    def learn(self, job: JobNow, profile: Profile, kind: str, gpus: int, took_s: float) -> None:
        """Learn from a job that completed."""
        name, told = profile.app or job.user, self._told(job, profile, kind, gpus)
        for key in ((name, kind), (name, "")):
            seen = self._counted.get(key, 0)
            share = max(MEMORY, 1.0 / (seen + 1.0))
            was = self.ratio.get(key, took_s / told)
            self.ratio[key] = was + share * (took_s / told - was)
            self._counted[key] = seen + 1

    def to_plain(self) -> dict[str, float]:
        """Return what was learned as plain values, for a file."""
        return {"|".join(key): value for key, value in self.ratio.items()}

    def take(self, plain: Mapping[str, float]) -> None:
        """Take what an earlier run learned."""
        for name, value in plain.items():
            app, _, kind = name.rpartition("|")
            self.ratio[app, kind] = float(value)
            self._counted[app, kind] = 1
