"""The constraint matrix: one slab of columns per request, grouped by template."""

from copter.runtime.processor import with_levels

__path__ = with_levels(__name__, __path__)

from copter.model.matrix.block_matrix import BlockMatrix
from copter.model.matrix.list_of_lists import SavedSlab, Slab
from copter.model.matrix.template import Template

__all__ = ["BlockMatrix", "SavedSlab", "Slab", "Template"]
