"""Files: the journal of edits, the encoding of plain values, atomic writes."""

from copter.processor import with_levels

__path__ = with_levels(__name__, __path__)
