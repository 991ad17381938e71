"""Schedulers written on :mod:`copter`: formulations, policies, traces, a simulator and reports.

The rooms, top to bottom; each imports only what stands below it (``[tool.importlinter]`` in pyproject.toml):

- ``cli``, then ``registry`` (policies by name) and ``report``;
- the schedulers ``sia``, ``hadar``, ``hops``, ``chronus``, ``hare`` and ``baselines``, independent of each other;
- ``deadlines`` (rewards, drawn deadlines), ``policy_kit`` (shared parts of policies), ``simulator``;
- ``traces``, ``placement``, ``goodput``, ``clusters``, ``semantics``, ``vocabulary``.

A scheduler's files have the same names for the same roles:

- ``formulation.py``: columns and rows of its program, and the edits that keep them;
- ``shim.py``: the integer plan from the relaxation's solution;
- ``job_book.py``: facts about each job;
- ``policy.py``: the protocol of :class:`~copter_frontends.vocabulary.SchedulingPolicy`, which calls the others;
- ``workload.py``: the paper's workload. Sia's are days sampled from traces, which every policy can use:
  :mod:`copter_frontends.simulator.workload`.
"""
