"""Where a command's results go: each place is tried before the work starts."""

from __future__ import annotations

import os
import tempfile

from copter.runtime.errors import CopterError
from copter.storage.files import require_writable
from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.output import InputError
from copter_frontends.report.extras import check_extras


def prepare_outputs(asked: SimulateOptions) -> None:
    """Check that all results can be written; raises InputError otherwise."""
    if asked.out is not None:
        prepare_directory(asked.out)
    if asked.save is not None:
        require_target("save", asked.save)


def prepare_directory(out: str) -> None:
    """Create a report's directory; raises InputError if that fails or files cannot be written there."""
    check_extras()
    try:
        os.makedirs(out, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be made: {error.strerror or error}") from error
    try:
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written to: {error.strerror or error}") from error


def prepare_report(path: str) -> None:
    """Raise InputError unless a page can be written to a file."""
    check_extras()
    require_target("report", path)


def require_target(option: str, path: str) -> None:
    """Raise InputError unless a file can be written here."""
    try:
        require_writable(path)
    except CopterError as error:
        raise InputError(f"--{option} {error}") from error
