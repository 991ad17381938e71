"""Code that only reproduces the paper: testbed, synthetic jobs, the printed program, prices by server
(docs/papers/hops.md).
"""
