"""
The schedulers
==============

Sia, Hadar, Hops, Chronus and Hare on one small cluster, an hour each, in a simulator: the same jobs, the same
GPUs. On the command line: ``copter simulate sia --gpus 10000 --compare highs``, ``copter compare --help``.
"""

import json

from click.testing import CliRunner

from copter_frontends.cli import cli

for policy in ("sia", "hadar", "hops", "chronus", "hare"):
    asked = ["simulate", policy, "--gpus", "64", "--jobs", "600", "--hours", "1", "--json"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{policy}: {summary['jobs_completed']} jobs done, average JCT {summary['avg_jct_h']:.2f} h, "
        f"utilisation {summary['utilisation']:.0%}"
    )
