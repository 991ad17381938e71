"""Serves the live page over HTTP, under this machine's own names only."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from copter_serve.shadow.page import shadow_page
from copter_serve.shadow.watch import Shadow

OWN_NAMES = ("127.0.0.1", "localhost")


class LivePage:
    """Serves `/` and `/shadow.json` until it is closed.

    Parameters
    ----------
    port : int
        Port to listen on; 0 for any free port.

    Raises
    ------
    OSError
        If the port cannot be opened.
    """

    def __init__(self, port: int) -> None:
        self._answers = {"/": (b"", "text/html; charset=utf-8"), "/shadow.json": (b"null", "application/json")}
        answers = self._answers

        class Handler(BaseHTTPRequestHandler):
            """Answers GET requests with the last published findings."""

            timeout = 20

            def do_GET(self) -> None:
                """Answer one request."""
                name = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
                found = answers.get(self.path) if name in OWN_NAMES else None
                body, kind = found or (b"not here\n", "text/plain")
                self.send_response(200 if found else 404)
                for header, value in (("Content-Type", kind), ("Content-Length", str(len(body)))):
                    self.send_header(header, value)
                self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, form: str, *values: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def show(self, shadow: Shadow) -> None:
        """Publish the shadow's present findings."""
        self._answers["/shadow.json"] = (json.dumps(shadow.summary()).encode(), "application/json")
        self._answers["/"] = (shadow_page(shadow, live=True).encode(), "text/html; charset=utf-8")

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
