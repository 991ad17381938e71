"""Screening of one block; called from the matrix's passes in C, so that nothing of it is seen from Python."""
