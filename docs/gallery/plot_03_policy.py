"""
A policy in 80 lines
====================

A scheduling policy of your own: shortest remaining work first, by goodput. The simulator tells it what
changed (jobs, progress, GPUs) and asks for a plan every round; the policy turns each of these into an edit of
its model. The whole file is ``frontends/examples/shortest_first.py``; this is its class:

.. literalinclude:: ../../frontends/examples/shortest_first.py
   :pyobject: ShortestFirst

Two hours of a small cluster:
"""

import runpy
from pathlib import Path

import copter_frontends
from copter_frontends.goodput import GoodputModel
from copter_frontends.simulator import Simulation, traces
from copter_frontends.vocabulary import configurations_of
from copter_frontends.vocabulary import named_clusters as clusters

examples = Path(copter_frontends.__file__).parents[1] / "examples"
policy = runpy.run_path(str(examples / "shortest_first.py"))["ShortestFirst"]

cluster = clusters.scaled_cluster(64)
jobs = traces.generate_day(40, hours=2.0, seed=1)
result = Simulation(cluster, jobs, policy(cluster), GoodputModel(configurations_of(cluster))).run(hours=2.0)
summary = result.summary()
print(f"{summary['jobs_completed']} of {len(jobs)} jobs done, utilisation {summary['utilisation']:.0%}")
assert summary["jobs_completed"] > 0
