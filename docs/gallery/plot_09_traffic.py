"""
Traffic on a backbone
=====================

How much of every demand is carried over which paths. A link is cut: flows at once by a deadline, the optimum
a moment later, and weights for the routers.
"""

from copter_frontends.traffic import TrafficFormulation, router_splits
from copter_frontends.traffic.workload import TrafficOptions, make_workload

workload = make_workload(TrafficOptions("random-20", scale=100.0, rounds=1, seed=0))
network = workload.network
form = TrafficFormulation(workload.paths, workload.first)
plan = form.plan()
print(f"{network.name}: {plan.total:,.0f} of {workload.first.sum():,.0f} served, gap {plan.gap:.1e}")

arc = int(network.links[0][0])
ends = network.nodes[network.source[arc]], network.nodes[network.target[arc]]
form.fail_link(*ends)
quick = form.plan(0.05)
best = form.plan()
print(f"cut {ends[0]}-{ends[1]}: {quick.total:,.0f} at once (gap {quick.gap:.1e}), {best.total:,.0f} at best")
assert quick.total <= best.total * (1 + 1e-9) <= plan.total * (1 + 2e-9)

splits = router_splits(form.paths, best.flows, form.capacity)
print(f"by routers with {splits.buckets} buckets: {splits.flows.sum():,.0f}")
