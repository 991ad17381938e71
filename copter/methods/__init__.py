"""How a program is solved: one room a method with its kernels; the loops that run them, in the order of choose.py."""
