"""Entry point of the ``copter`` command; Ctrl-C during imports ends it in one line, too."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """Import the command line and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from copter_frontends import cli

    signal.signal(signal.SIGINT, before)
    cli.main()


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"copter: interrupted\n")
    os._exit(1)
