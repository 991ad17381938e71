"""
A first session
===============

Twelve jobs share two kinds of GPUs. Each job has five options; a round picks at most one of them for every
job. Between rounds jobs come and go: the :class:`copter.Model` is edited in place, and the
:class:`copter.Session` goes on from where it stood.
"""

import tempfile
from pathlib import Path

import copter

model = copter.Model(sense="max")
model.add_resource("a100", 8)
model.add_resource("t4", 16)
usage = {"a100": [1, 2, 4, 0, 0], "t4": [0, 0, 0, 1, 4]}  # GPUs that each of the five options takes
for job in range(12):
    model.add_request(job, [3.0, 5.0 + job / 9, 8.0, 1.0, 2.5], usage, integer=True)

session = copter.Session(model)
plan = session.solve_integer()
print("worth", plan.objective, "at most", plan.bound, {job: plan.column(job) for job in range(12)})

# %%
# The next round: a job is done, two GPUs are gone, another job has become more urgent. An edit that cannot be
# made raises an error that says why, and changes nothing.

model.remove_request(3)
model.remove_units("a100", 2)
model.update_cost(5, [30.0, 50.0, 80.0, 10.0, 25.0])
try:
    model.add_request(5, [1.0], {"a100": [1]})
except copter.DuplicateHandleError as error:
    print("refused:", error)

plan = session.solve_integer(deadline_s=0.05)
print("worth", plan.objective, "a GPU of a100 costs", session.last_solution.price("a100"))

# %%
# Why did job 5 get what it got?

print(session.last_solution.explain(5))

# %%
# A session can be saved, with all that it knows, and loaded by another process.

path = Path(tempfile.mkdtemp()) / "session.copter"
session.save(path)
restored = copter.Session.load(path)
assert restored.solve_integer().objective == plan.objective
