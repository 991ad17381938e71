"""How one warm solve goes; read solve.py together with docs/method/algorithm.md."""
