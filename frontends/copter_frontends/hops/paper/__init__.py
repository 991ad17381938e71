"""What only re-makes the paper: testbed, made-up jobs, the program as printed, prices by server (docs/papers/hops.md)."""
