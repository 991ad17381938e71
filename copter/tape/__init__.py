"""The tape: a model as it was, every edit since, and the answer of every round, in one file."""

from copter.tape.reader import Record, TapeReader
from copter.tape.watching import recorded
from copter.tape.writer import TapeWriter

__all__ = ["Record", "TapeReader", "TapeWriter", "recorded"]
