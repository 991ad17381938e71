"""How one warm solve goes; read solve.py beside docs/algorithm.md."""
