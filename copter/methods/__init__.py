"""The solution methods: one folder per method, and the loops that call them in the order of choose.py."""
