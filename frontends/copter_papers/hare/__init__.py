"""Code that only reproduces the paper: testbed, generated jobs, opponents, executors, exact program
(docs/papers/hare.md).
"""
