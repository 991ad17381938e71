"""
Reading a report
================

``copter simulate sia --gpus 10000 --rounds 60 --compare highs --out report`` writes a folder: ``report.html``
for people, and the same rounds and jobs as Parquet tables for programs; ``--json`` prints the summary.
"""

import json
import tempfile
from pathlib import Path

import pyarrow.parquet
from click.testing import CliRunner

from copter_frontends.cli import cli

folder = Path(tempfile.mkdtemp()) / "report"
done = CliRunner().invoke(cli, ["simulate", "sia", "--gpus", "64", "--rounds", "10", "--out", str(folder), "--json"])
assert done.exit_code == 0, done.output
print(sorted(each.name for each in folder.iterdir()))

# %%
# What the summary says:

summary = json.loads(done.stdout.splitlines()[-1])
for name, value in summary.items():
    if isinstance(value, (int, float)):
        print(f"{name}: {value}")

# %%
# The rounds, one line each:

print(pyarrow.parquet.read_table(folder / "rounds.parquet").slice(0, 3).to_pylist()[0])
