"""The examples of reference/service.md run as they stand, by curl; the deployment files say what the command takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from served import ROOT, Served

from copter_serve.commands.serve import serve
from copter_serve.service.cluster_state import ClusterState
from copter_serve.service.delta import FIELDS
from copter_serve.service.job_record import FIELDS as JOB_FIELDS
from copter_serve.service.policy_names import NEEDS_WORK, POLICY_NAMES
from copter_serve.service.volcano import VERBS

TEXT = (ROOT / "docs" / "reference" / "service.md").read_text()


def test_the_examples_run_in_order(service: Served) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    environment = {**os.environ, "SERVICE": f"http://127.0.0.1:{service.port}"}
    outputs = []
    for number, block in enumerate(blocks):
        if number == 1:  # by then there is a plan, as there would be for a reader
            service.plan("main", 1)
        done = subprocess.run(
            ["sh", "-e", "-c", block.replace("curl -sfN --max-time 2", "! curl -sfN --max-time 2")],
            env=environment,
            capture_output=True,
        )
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        outputs.append(done.stdout.decode())
    assert '{"sequence":1,"plan":{"version":' in outputs[0]
    assert "event: plan" in outputs[1]
    assert '"sequence":3' in outputs[2]
    assert service.ask("GET", "/v1/clusters/main")[0] == 404


def test_the_tutorial_runs(service: Served) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "start" / "service.md").read_text(), re.DOTALL)
    environment = {**os.environ, "SERVICE": f"http://127.0.0.1:{service.port}"}
    done = subprocess.run(["sh", "-e", "-c", block], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"sequence":1' in done.stdout
    assert '"jobs"' in done.stdout


def test_the_page_names_what_there_is() -> None:
    for name in (*FIELDS, *POLICY_NAMES):
        assert f"`{name}`" in TEXT, name
    for name in JOB_FIELDS - {"id", "submit_s"}:
        assert name in TEXT, name
    told = set(re.findall(r"extender\.\w+Verb: (\w+)", TEXT))
    assert told <= set(VERBS)
    assert {"srtf", "themis"} <= set(NEEDS_WORK)
    assert ClusterState.resolve.__doc__ is not None


@pytest.mark.parametrize(
    "path", ["docs/reference/service.md", "frontends/deploy/Containerfile", "frontends/deploy/copter-serve.service"]
)
def test_options_are_the_commands(path: str) -> None:
    known = {option for parameter in serve.params for option in parameter.opts}
    known |= set(re.findall(r"\"(--[a-z-]+)\"", (ROOT / "benchmarks" / "serve_load.py").read_text()))
    text = (ROOT / path).read_text()
    others = {"--no-cache-dir", "--no-install-recommends", "--system", "--uid", "--home-dir", "--create-home", "--from",
              "--interval", "--timeout", "--start-period", "--max-time", "--now"}  # fmt: skip
    assert set(re.findall(r"--[a-z][a-z-]+", text)) - others <= known
