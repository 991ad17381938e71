"""Replacements of other schedulers' policies by copter, each in that scheduler's calling convention
(docs/reference/service.md).
"""
