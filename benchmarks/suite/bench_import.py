"""How long a scheduler waits before its first round."""

from __future__ import annotations

import subprocess
import sys


def timeraw_import_copter() -> str:
    """The engine, in a fresh interpreter."""
    return "import copter"


def timeraw_import_sia() -> str:
    """The Sia frontend."""
    return "import copter_frontends.policies.sia"


def track_modules() -> int:
    """Modules that importing the engine loads."""
    code = "import sys; before = len(sys.modules); import copter; print(len(sys.modules) - before)"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


track_modules.unit = "modules"
