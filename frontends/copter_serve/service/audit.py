"""The audit log: one line of JSON per requested change, in an append-only file."""

from __future__ import annotations

import json
import logging
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from copter.runtime.errors import SettingsError

LOG = logging.getLogger("copter.serve")
LONGEST = 300  # most characters of a path or an id in a record


class Audit:
    """Appends lines to the file, each by one write before the response is sent.

    Parameters
    ----------
    path : Path
        File of the log; made, readable by its owner only, if it does not exist.

    Raises
    ------
    SettingsError
        If the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = self._opened()

    def _opened(self) -> int:
        try:
            return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise SettingsError(f"the audit log {self.path} cannot be opened: {error.strerror}") from error

    def reopen(self) -> None:
        """Open the file of this name anew, after a log rotation has moved the old one; raises as at the start."""
        before, self._file = self._file, self._opened()
        os.close(before)

    def write(self, scope: Any, who: str, status: int) -> None:
        """Record who requested what, when, and the result; failures to write go to the service's log."""
        client = scope.get("client") or ("unknown", 0)
        line = {
            "when": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
            "who": who,
            "from": client[0],
            "what": f"{scope['method']} {scope['path'][:LONGEST]}",
            **scope.get("change", {}),
            "result": status,
        }
        data = json.dumps(line).encode() + b"\n"
        try:
            if os.write(self._file, data) != len(data):
                LOG.error("the audit log %s took a part of a line", self.path)
        except OSError as error:
            LOG.error("the audit log %s cannot be written: %s", self.path, error.strerror)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
