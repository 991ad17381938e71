"""Files: the journal of edits, the encoding of plain values, atomic writes."""
