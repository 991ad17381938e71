"""The dual simplex method for one small program: a start that costs next to nothing, and a vertex."""
