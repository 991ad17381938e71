"""
A service
=========

``copter serve --data FOLDER`` schedules clusters over HTTP: deltas of jobs and GPUs go in, feasible plans come
out. What it acknowledges survives ``kill -9``. reference/service.md has all of it, with curl; here it is driven from
Python.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.request


def call(method, path, body=None):
    """One request to the service, and its answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(service + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


command = [sys.executable, "-m", "copter_frontends.cli", "serve", "--data", tempfile.mkdtemp(), "--port", "0"]
process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
service = next(line for line in process.stderr if "http://" in line).split()[-1].rstrip("/")

# %%
# A cluster of two kinds of GPUs, and two jobs; of the first one speeds are known:

call(
    "PUT",
    "/v1/clusters/main",
    {
        "types": {"a100": {"nodes": 2, "gpus_per_node": 8}, "t4": {"nodes": 4, "gpus_per_node": 4}},
        "policy": "allocation",
    },
)
done = call(
    "POST",
    "/v1/clusters/main/deltas",
    {
        "id": "delta-1",
        "add_jobs": [
            {"id": "train-1", "weight": 2, "throughputs": {"a100": {"4": 410, "8": 760}, "t4": {"4": 95}}},
            {"id": "train-2", "gpus": 4},
        ],
    },
)
print(done)

# %%
# The plan is computed meanwhile:

for _ in range(200):
    plan = call("GET", "/v1/clusters/main/plan")
    if plan.get("sequence") == done["sequence"]:
        break
    time.sleep(0.1)
print(plan["status"], plan["allocations"])
assert set(plan["allocations"]) == {"train-1", "train-2"}

# %%
# SIGTERM stops it with a snapshot.

process.terminate()
assert process.wait(30) == 0
