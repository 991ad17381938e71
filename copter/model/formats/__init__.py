"""Readers and writers of linear programs in MPS and LP files."""
