"""What only re-makes the paper: testbed, made-up jobs, the printed program, prices by server (docs/papers/hops.md)."""
