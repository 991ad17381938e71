"""Schedulers written on :mod:`copter`: formulations, policies, traces, a simulator and reports.

docs/reference/map_frontends.md has a line for each room; a room imports only what stands below it
(``[tool.importlinter]`` in pyproject.toml).
"""
