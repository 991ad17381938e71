"""What only re-makes the papers: the public simulator's workloads, HiGHS from scratch (docs/papers/sia.md)."""
