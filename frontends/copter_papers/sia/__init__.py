"""Code that only reproduces the papers: the public simulator's workloads, HiGHS from scratch (docs/papers/sia.md)."""
