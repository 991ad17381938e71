"""One in-place pass each: no allocation, no printing, no stopping test; the GIL is released in every one."""
