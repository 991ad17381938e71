"""The differential model: its contents, its edits, and the ledger that can undo every edit."""

from copter.model.model import Model

__all__ = ["Model"]
