"""A headless Chromium, spoken to by its debugging pipe (NUL-ended JSON on file descriptors 3 and 4)."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT_S = 90.0


class Browser:
    """One page in a browser of its own; skips the test where there is none.

    Parameters
    ----------
    address : str
    profile : Path
        Folder for the browser's files.
    """

    def __init__(self, address: str, profile: Path) -> None:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            pytest.skip(f"none of {', '.join(NAMES)} is here: what the page needs is checked without a browser")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def numbered() -> None:  # the pipe has these numbers
            kept = os.dup(to_read), os.dup(to_write)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self.process = subprocess.Popen(
            [
                program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--remote-debugging-pipe", f"--user-data-dir={profile}", "--window-size=1000,900", "about:blank",
            ],
            preexec_fn=numbered, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._left, self._number, self._session = b"", 0, ""
        self.problems: list[str] = []
        try:
            pages = [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
            told = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
            self._session = told["sessionId"]
            for domain in ("Runtime", "Log", "Page"):
                self.call(f"{domain}.enable")
            self.call("Page.navigate", url=address)
        except BaseException:
            self.close()
            raise

    def call(self, method: str, **given: Any) -> Any:
        """One command's result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("method") == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(told["params"]["exceptionDetails"]))
            if told.get("method") == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.problems.append(json.dumps(told["params"]["entry"]))
            if told.get("id") == self._number:
                assert "result" in told, told
                return told["result"]

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is worth in the page."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, expression: str) -> Any:
        """The first true value of an expression."""
        end = time.monotonic() + LIMIT_S
        while not (found := self.value(expression)):
            assert time.monotonic() < end, (expression, self.value("document.body.innerText"), self.problems)
            time.sleep(0.05)
        return found

    def picture(self) -> bytes:
        """The page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        """End the browser and its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._read)
        os.close(self._write)

    def _next(self) -> Any:
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self._left:
            assert select.select([self._read], [], [], max(end - time.monotonic(), 0.0))[0], "the browser says nothing"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._left += part
        first, _, self._left = self._left.partition(b"\0")
        return json.loads(first)
