"""Entry point of the ``copter`` command.

Ctrl-C during imports ends it in one line, too; a hangup during them does not end the service, which reads its tokens
after them.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Import the command line and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    if sys.argv[1:2] == ["serve"] and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda number, frame: None)
    from copter_frontends import cli

    signal.signal(signal.SIGINT, before)
    cli.main()


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"copter: interrupted\n")
    os._exit(1)
