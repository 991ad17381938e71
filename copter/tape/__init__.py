"""The tape: one file with a model, every later edit, and the answer of every round."""

from copter.tape.reader import Record, TapeReader
from copter.tape.watching import recorded
from copter.tape.writer import TapeWriter

__all__ = ["Record", "TapeReader", "TapeWriter", "recorded"]
