"""README's example must print what README says, by the installed copter: `python readme_example.py README.md`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def check(readme: Path) -> None:
    """Run a page's Python block in another process; raises SystemExit if its output is not the `text` block."""
    text = readme.read_text()
    code = re.search(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    wanted = re.search(r"^```text\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    if code is None or wanted is None:
        raise SystemExit(f"{readme}: no example, or no output of it")
    done = subprocess.run(
        [sys.executable, "-I", "-c", code[1]], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode or done.stdout != wanted[1]:
        raise SystemExit(f"README's example printed\n{done.stdout}{done.stderr}instead of\n{wanted[1]}")
    print(f"README's example ran: {sys.executable}")


if __name__ == "__main__":
    check(Path(sys.argv[1]).resolve())
