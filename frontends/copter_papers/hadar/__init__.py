"""Code that only reproduces the paper: its synthetic workload (docs/papers/hadar.md)."""
