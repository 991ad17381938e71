"""Base of objects that hold a model and its session and can be pickled."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from copter import Model, Session


class SessionHolder:
    """Base of classes with a `model` and its `session`: pickles both as the bytes of :meth:`copter.Session.save`."""

    model: Model
    session: Session

    def __getstate__(self) -> dict[str, Any]:
        """All but the model and the session, which are saved as bytes."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("model", "session")}
        with tempfile.TemporaryDirectory() as folder:
            self.session.save(Path(folder) / "session", restart_journal=False)
            return {**state, "saved_session": (Path(folder) / "session").read_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("saved_session")
        self.__dict__.update(state)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "session").write_bytes(saved)
            self.session = Session.load(Path(folder) / "session", journal=None)
        self.model = self.session.model
