"""
A shim of your own
==================

An LP may split a job between options. A *shim* makes whole choices of the LP's solution. copter has three
("rounding", the default; "dive"; "exact"); a scheduler with rules of its own brings its own: a callable that
is given the model, the LP's solution and the last plan, and returns a plan. :func:`copter.shims.plan_of`
makes it from the columns that were chosen; ``solve_integer`` checks it in exact arithmetic, and refuses one
that takes more than there is.

Here jobs of the gold class go first, whatever the LP thinks of them.
"""

import copter
from copter.shims import plan_of

gpus, sizes = 10, [1, 2, 4]
model = copter.Model("max")
model.add_resource("gpu", gpus)
gold = {2, 7}
for job in range(8):
    model.add_request(job, [1.0 + job / 10, 1.9 + job / 10, 3.5], {"gpu": sizes}, integer=True)


def gold_first(model, solution, previous):
    """Each job's column with the largest part, gold jobs first; what does not fit waits."""
    left, chosen = gpus, {}
    values = {job: solution.of(job) for job in range(8)}
    for job in sorted(values, key=lambda job: (job not in gold, -values[job].max())):
        best = int(values[job].argmax()) if values[job].max() > 0 else 0
        fitting = [column for column in (best, 0) if sizes[column] <= left]
        if fitting:
            chosen[job] = fitting[0]
            left -= sizes[fitting[0]]
    return plan_of(model, solution, chosen)


session = copter.Session(model)
plan = session.solve_integer(gold_first)
print("worth", plan.objective, "of at most", plan.bound, {job: plan.column(job) for job in range(8)})
assert all(plan.column(job) is not None for job in gold)

# %%
# The default shim beside it, which has no gold class:

print("worth", session.solve_integer().objective)
