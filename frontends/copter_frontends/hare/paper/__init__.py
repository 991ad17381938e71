"""What only re-makes the paper: testbed, made-up jobs, opponents, executors, exact program (docs/papers/hare.md)."""
