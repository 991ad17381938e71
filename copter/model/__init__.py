"""The differential model: what it holds, its edits, the ledger that can take each of them back."""

from copter.model.model import Model

__all__ = ["Model"]
