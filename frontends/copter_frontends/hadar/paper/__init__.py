"""What only re-makes the paper: its made-up workload (docs/papers/hadar.md)."""
