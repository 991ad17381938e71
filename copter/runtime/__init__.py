"""What a solve needs of the process that it runs in: the clock, Ctrl-C, threads, one user at a time."""
