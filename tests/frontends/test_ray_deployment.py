"""The files for a small Ray cluster load, name files that are there, and run commands that Ray has."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with Ray and with the frontends")

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "frontends" / "deploy"


def loaded(name: str) -> dict[str, Any]:
    found = yaml.safe_load((DEPLOY / name).read_text())
    assert isinstance(found, dict)
    return found


def test_containers_are_built_from_files_that_are_there_and_share_a_directory() -> None:
    compose = loaded("ray-compose.yaml")
    assert set(compose["services"]) == {"head", "worker"}
    for service in compose["services"].values():
        context = (DEPLOY / service["build"]["context"]).resolve()
        assert (context / service["build"]["dockerfile"]).is_file()
        assert (context / "pyproject.toml").is_file()
        (volume,) = service["volumes"]
        assert volume.split(":")[0] in compose["volumes"]
        assert service["command"].startswith("ray start ")
        assert "--block" in service["command"]
    port = next(word for word in shlex.split(compose["services"]["head"]["command"]) if word.startswith("--port="))
    assert f"--address=head:{port.removeprefix('--port=')}" in compose["services"]["worker"]["command"]


def test_the_image_has_the_extras_and_examples_that_its_comments_use() -> None:
    text = (DEPLOY / "Containerfile.ray").read_text()
    pyproject = (ROOT / "pyproject.toml").read_text()
    for extra in text.split("/src[")[1].split("]")[0].split(","):
        assert f"\n{extra} = [" in pyproject
    for line in text.splitlines():
        if line.startswith("COPY ") and "--from" not in line and line.split()[1] != ".":
            assert (ROOT / line.split()[1]).exists()
    said = (DEPLOY / "ray-compose.yaml").read_text()
    assert "python frontends/examples/sia_over_ray.py" in said
    assert (ROOT / "frontends" / "examples" / "sia_over_ray.py").is_file()


def test_machines_of_ones_own_are_listed_and_reached() -> None:
    cluster = loaded("ray-up.yaml")
    assert cluster["provider"]["type"] == "local"
    assert cluster["min_workers"] == cluster["max_workers"] == len(cluster["provider"]["worker_ips"])
    assert cluster["auth"]["ssh_user"]
    for which in ("head_start_ray_commands", "worker_start_ray_commands"):
        assert all(command.startswith("~/copter/.venv/bin/ray ") for command in cluster[which])


def commands() -> list[str]:
    """Every ray command of both files."""
    compose, cluster = loaded("ray-compose.yaml"), loaded("ray-up.yaml")
    found = [service["command"] for service in compose["services"].values()]
    return found + cluster["head_start_ray_commands"] + cluster["worker_start_ray_commands"]


def test_commands_are_rays_own_with_options_that_it_has() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
    told: dict[str, str] = {}
    for command in commands():
        _, what, *options = shlex.split(command)
        if what not in told:
            done = subprocess.run(
                [sys.executable, "-m", "ray.scripts.scripts", what, "--help"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            told[what] = done.stdout
        for option in options:
            assert option.split("=")[0] in told[what], command


def test_ray_takes_the_cluster_file() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(loaded("ray-up.yaml")))
