"""What comes with copter for a first try: a workload, a network, a program, and a cluster where none is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_json

from copter_frontends import cli
from copter_frontends.traffic.workload import TrafficOptions, network_of
from copter_frontends.vocabulary import samples

MOST_BYTES = 200_000
"""Of all shipped samples together."""


def test_the_samples_are_small() -> None:
    assert sum(each.stat().st_size for each in Path(samples.__file__).parent.glob("*.*")) < MOST_BYTES


def test_a_simulation_needs_no_data_and_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = run_json(capsys, "simulate", "fifo", "--trace", "sample", "--rounds", "3")
    assert code == 0
    assert "no --gpus and no --cluster: taking --cluster sia-het" in err
    assert (found["gpus"], found["jobs_submitted"]) == (64, 160)


def test_policies_are_compared_without_data_and_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = run_json(capsys, "compare", "--policies", "fifo,srtf", "--trace", "sample", "--rounds", "2")
    assert code == 0
    assert err.count("taking --cluster sia-het") == 1
    assert [each["gpus"] for each in found["policies"]] == [64, 64]


def test_a_network_comes_along() -> None:
    network = network_of(TrafficOptions("sample"))
    assert len(network.nodes) == 24
    assert network.capacity.min() > 0.0


def test_a_program_comes_along(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = run_json(capsys, "solve", "sample")
    assert code == 0
    assert found["status"] == "optimal"
    assert 0.0 <= found["bound"] - found["objective"] <= 1e-5 * found["objective"]


def test_a_file_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["name,time,application,num_replicas,batch_size", "mine,0,cifar10,1,128"]
    (tmp_path / "sample").write_text("\n".join(lines) + "\n")
    with pytest.raises(SystemExit):
        cli.main(["simulate", "fifo", "--trace", "sample", "--rounds", "2", "--json"])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["jobs_submitted"] == 1
