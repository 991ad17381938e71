"""A recording of a terminal: what a command prints, and when."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WIDTH, HEIGHT = 92, 40
"""Columns and rows of the terminal that a command is recorded on."""

NOTICE = ("Running HiGHS ", "Includes third-party software components")
"""Beginnings of what HiGHS prints when it is loaded, which falls into the live line."""

_PART = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+|\x1b")


@dataclass(frozen=True, slots=True)
class Frame:
    """The terminal at a time.

    Attributes
    ----------
    at_s : float
        Seconds since the command began.
    lines : tuple of str
        From the top; colours as ANSI codes.
    """

    at_s: float
    lines: tuple[str, ...]


def record(command: Sequence[str], path: Path, folder: Path) -> None:
    """Run the command on a terminal of its own, and write what it prints as an asciicast (version 2).

    Parameters
    ----------
    command : sequence of str
    path : Path
        Of the recording.
    folder : Path
        Where the command runs.

    Raises
    ------
    subprocess.CalledProcessError
        If the command fails: nothing is written then.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": f"{WIDTH}", "LINES": f"{HEIGHT}"}
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    events = [json.dumps({"version": 2, "width": WIDTH, "height": HEIGHT, "title": " ".join(command)})]
    while True:
        try:
            said = os.read(ours, 65536)
        except OSError:  # the other side is closed: the command has ended
            break
        if not said:
            break
        events.append(json.dumps([round(time.perf_counter() - began, 3), "o", said.decode(errors="replace")]))
    os.close(ours)
    if status := process.wait():
        raise subprocess.CalledProcessError(status, list(command))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(events) + "\n")


def frames(path: Path) -> list[Frame]:
    """The terminal after every event of a recording that changes it, without HiGHS's notice.

    Raises
    ------
    ValueError
        If the file is no asciicast.
    """
    first, *rest = path.read_text().splitlines() or [""]
    try:
        version = json.loads(first)["version"]
    except (ValueError, KeyError, TypeError):
        version = None
    if version != 2:
        raise ValueError(f"{path}: not an asciicast of version 2; record it again")
    found: list[Frame] = []
    lines, row = [""], 0
    for at_s, kind, text in map(json.loads, rest):
        if kind == "o" and not text.startswith(NOTICE):
            row = _print(lines, row, text)
            shown = tuple(lines)
            if not found or found[-1].lines != shown:
                found.append(Frame(at_s, shown))
    return found


def _print(lines: list[str], row: int, text: str) -> int:
    """Print on the lines from a row on, as a terminal does; the row afterwards. Of a row all is written anew."""
    fresh = False
    for part in _PART.finditer(text):
        code, said = part.group(2), part.group()
        if said == "\n":
            row, fresh = row + 1, False
            lines += [""] * (row + 1 - len(lines))
        elif said == "\r":
            fresh = True
        elif code == "A":
            row = max(0, row - int(part.group(1) or 1))
        elif code == "K":
            lines[row] = ""
        elif code is None or code == "m":
            lines[row] = said if fresh and code is None else lines[row] + said
            fresh = fresh and code == "m"
    return row
