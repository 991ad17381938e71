"""Schedulers written on :mod:`copter`: formulations, policies, traces, a simulator and reports."""
