"""Health check of a service on this machine: ``python -m copter_serve.service.health [HOST:PORT]``.

It asks /healthz by HTTP and then by HTTPS, because a container's command does not know which of them is served. The
certificate is not checked: it is made for the name that others use, and the answer is only whether the process lives.
"""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request
from collections.abc import Sequence

WAIT_S = 2.0  # seconds for each of the two requests


def is_healthy(place: str) -> bool:
    """Return whether a service answers at HOST:PORT."""
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    for scheme in ("http", "https"):
        try:
            with urllib.request.urlopen(f"{scheme}://{place}/healthz", timeout=WAIT_S, context=anyone) as answer:
                return bool(answer.status == 200)
        except OSError:
            continue
    return False


def main(arguments: Sequence[str]) -> int:
    """Return exit code 0 if the service answers, 1 if not; the port is that of COPTER_SERVE_PORT, or 8470."""
    place = arguments[0] if arguments else f"127.0.0.1:{os.environ.get('COPTER_SERVE_PORT', '8470')}"
    return 0 if is_healthy(place) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
