"""The tape: one file with a model, every later edit, and the answer of every round."""

from copter.storage.tape.reader import Record, TapeReader
from copter.storage.tape.watching import recorded
from copter.storage.tape.writer import TapeWriter

__all__ = ["Record", "TapeReader", "TapeWriter", "recorded"]
