"""What only the papers' experiments need: opponents, exact programs, testbeds, workloads."""
