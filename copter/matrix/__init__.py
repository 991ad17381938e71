"""The list-of-lists matrix: one slab a request, one list of slabs."""

from copter.matrix.list_of_lists import BlockMatrix, Slab, Template

__all__ = ["BlockMatrix", "Slab", "Template"]
