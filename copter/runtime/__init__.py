"""Process-wide facilities of a solve: the clock, Ctrl-C, threads, and exclusive use."""
