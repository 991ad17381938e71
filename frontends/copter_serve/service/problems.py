"""Errors of requests as problem documents (RFC 9457): what is wrong, where, how to fix it."""

from __future__ import annotations

from typing import Any

MEDIA_TYPE = "application/problem+json"

TITLES = {
    400: "Malformed request",
    401: "No valid token",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "The request did not arrive in time",
    409: "In conflict with the present state",
    411: "Length required",
    413: "Body too large",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Invalid document",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
}


class Problem(Exception):
    """A refused request; nothing has changed.

    Parameters
    ----------
    status : int
        HTTP status.
    detail : str
        What is wrong.
    where : str
        Position in the document as a JSON pointer, or the name of a header or parameter.
    fix : str
        How to mend it.
    """

    def __init__(self, status: int, detail: str, where: str = "", fix: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.where, self.fix = status, detail, where, fix

    def document(self) -> dict[str, Any]:
        """Return the problem document."""
        found: dict[str, Any] = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
        }
        if self.where:
            found["where"] = self.where
        if self.fix:
            found["fix"] = self.fix
        return found


def invalid(where: str, detail: str, fix: str = "") -> Problem:
    """Return the problem of a well-formed JSON document with invalid content."""
    return Problem(422, f"{where}: {detail}", where, fix)


def conflict(where: str, detail: str, fix: str = "") -> Problem:
    """Return the problem of a document that contradicts the current state."""
    return Problem(409, f"{where}: {detail}", where, fix)
