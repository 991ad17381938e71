"""How one solve goes; read solve.py beside docs/algorithm.md."""
