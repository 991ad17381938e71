"""Guards: using a model or session from two threads at once raises an error that says so."""

from __future__ import annotations

import threading

from copter.runtime.errors import EditNotAllowedError


class Guard:
    """A lock without waiting: while one activity holds it, a second one gets an EditNotAllowedError.

    Parameters
    ----------
    what : str
        Name of the guarded object in errors.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._lock = threading.Lock()
        self._owner = 0
        self._doing = ""

    def enter(self, doing: str) -> None:
        """Begin an activity ("being solved", "being edited")."""
        if not self._lock.acquire(blocking=False):
            self.refuse()
        self._owner, self._doing = threading.get_ident(), doing

    def leave(self) -> None:
        """End the activity."""
        self._owner = 0
        self._lock.release()

    def require_owner(self) -> None:
        """Raise EditNotAllowedError unless this thread's activity holds the guard."""
        if self._owner != threading.get_ident():
            self.refuse()

    def refuse(self) -> None:
        """Raise EditNotAllowedError that names the activity and the thread that hold the guard."""
        if self._owner == threading.get_ident():
            raise EditNotAllowedError(f"this {self.what} is {self._doing}: let that end first")
        raise EditNotAllowedError(
            f"this {self.what} is {self._doing} in another thread: use one {self.what} a thread, or take turns"
        )

    def held(self, doing: str) -> Held:
        """Hold the guard during a ``with`` block."""
        return Held(self, doing)


class Held:
    """A ``with`` block that holds a guard."""

    __slots__ = ("doing", "guard")

    def __init__(self, guard: Guard, doing: str) -> None:
        self.guard, self.doing = guard, doing

    def __enter__(self) -> None:
        self.guard.enter(self.doing)

    def __exit__(self, *_: object) -> None:
        self.guard.leave()
