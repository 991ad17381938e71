"""Applications and GPU types from a YAML file (docs/method/goodput.md)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from copter.errors import InvalidDataError
from copter_frontends.goodput.applications import ALL_APPLICATIONS, Application, GpuProfile
from copter_frontends.goodput.bootstrap import bootstrapped
from copter_frontends.goodput.throughput import ThroughputParameters
from copter_frontends.vocabulary import InvalidClusterError
from copter_frontends.vocabulary.yaml_files import check_fields, load_yaml, read_count, read_positive, read_word

CONSTANTS = ("alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r", "gamma")
LOCAL = ("min_local_batch_size", "max_local_batch_size")


def read_applications(
    path: str | Path, known: Mapping[str, Application] = ALL_APPLICATIONS
) -> Mapping[str, Application]:
    """Return the known applications, extended by the GPU types and applications of a file.

    The file has a list ``gpu_types``, a list ``applications``, or both::

        gpu_types:
          - {name: h100, like: a100, speed: 2.2, speeds: {bert: 3.0}, memory: 2}
        applications:
          - name: resnet18
            init_batch_size: 128
            max_batch_size: 4096
            work_samples: 5.0e6
            noise_scale: [100, 1000, 10000]
            restart_s: 30
            gpus:
              h100: {alpha_c: 0.02, beta_c: 1.0e-4, alpha_n: 0.01, beta_n: 1.0e-3, alpha_r: 0.01, beta_r: 1.0e-3,
                     gamma: 2, min_local_batch_size: 32, max_local_batch_size: 4096}

    A GPU type computes ``speed`` times as fast as the type named by ``like`` (``speeds``: by application), synchronises
    at the same speed (G9), and holds local batches ``memory`` times as large (1 by default). An application's
    ``slowdown`` is 1 by default.

    Raises
    ------
    InvalidClusterError, InvalidDataError
        If the file cannot be read or is not such a file; the message names the file and the field.
    """
    content = load_yaml(path)
    fields = check_fields(str(path), content, (), ("gpu_types", "applications"))
    result = dict(known)
    for i, entry in enumerate(_list(path, fields, "gpu_types")):
        _add_type(f"{path}: gpu_types[{i}]", entry, result)
    for i, entry in enumerate(_list(path, fields, "applications")):
        where = f"{path}: applications[{i}]"
        made = _application(where, entry)
        if made.name in result:
            raise InvalidClusterError(f"{where}.name: there is an application {made.name!r} already")
        result[made.name] = made
    return MappingProxyType(result)


def _list(path: str | Path, fields: Mapping[str, Any], name: str) -> list[Any]:
    entries = fields.get(name, [])
    if not isinstance(entries, list):
        raise InvalidClusterError(f"{path}: {name!r} must be a list")
    return entries


def _add_type(where: str, entry: Any, applications: dict[str, Application]) -> None:
    """Give every application that runs on the type named by ``like`` a profile on the new type."""
    fields = check_fields(where, entry, ("name", "like", "speed"), ("speeds", "memory"))
    name, like = read_word(f"{where}.name", fields["name"]), read_word(f"{where}.like", fields["like"])
    speed, memory = _positive(f"{where}.speed", fields["speed"]), fields.get("memory", 1)
    memory = _positive(f"{where}.memory", memory)
    modelled = {kind for application in applications.values() for kind in application.gpus}
    if name in modelled:
        raise InvalidClusterError(f"{where}.name: there is a GPU type {name!r} already")
    if like not in modelled:
        raise InvalidClusterError(f"{where}.like: no GPU type is called {like!r}; there are {', '.join(modelled)}")
    speeds = fields.get("speeds", {})
    if not isinstance(speeds, dict) or not set(speeds) <= set(applications):
        raise InvalidClusterError(f"{where}.speeds: must be a mapping of applications to numbers, not {speeds!r}")
    for key, application in applications.items():
        profile = application.gpus.get(like)
        if profile is None:
            continue
        own = _positive(f"{where}.speeds.{key}", speeds.get(key, speed))
        most = max(profile.min_local_batch_size, int(profile.max_local_batch_size * memory))
        made = GpuProfile(bootstrapped(profile.parameters, 1 / own), profile.min_local_batch_size, most)
        applications[key] = replace(
            application, gpus=MappingProxyType({**application.gpus, name: made}), pipeline=_cut(application, name, like)
        )


def _cut(application: Application, name: str, like: str) -> Any:
    """Return the application's pipeline on a new type, with as many stages as on the type that it resembles."""
    pipeline = application.pipeline
    if pipeline is None or like not in pipeline.stages:
        return pipeline
    return replace(pipeline, stages=MappingProxyType({**pipeline.stages, name: pipeline.stages[like]}))


def _application(where: str, entry: Any) -> Application:
    needed = ("name", "init_batch_size", "max_batch_size", "work_samples", "noise_scale", "restart_s", "gpus")
    fields = check_fields(where, entry, needed, ("policy_restart_s", "slowdown"))
    noise, gpus = fields["noise_scale"], fields["gpus"]
    if not isinstance(noise, list) or len(noise) < 2:
        raise InvalidClusterError(f"{where}.noise_scale: must be a list of 2 or more numbers, not {noise!r}")
    if not isinstance(gpus, dict) or not gpus:
        raise InvalidClusterError(f"{where}.gpus: must be a mapping with at least one GPU type, not {gpus!r}")
    restart_s = _positive(f"{where}.restart_s", fields["restart_s"])
    try:
        return Application(
            name=read_word(f"{where}.name", fields["name"]),
            init_batch_size=read_count(f"{where}.init_batch_size", fields["init_batch_size"], 1),
            max_batch_size=read_count(f"{where}.max_batch_size", fields["max_batch_size"], 1),
            work_samples=_positive(f"{where}.work_samples", fields["work_samples"]),
            noise_scale=tuple(_positive(f"{where}.noise_scale[{k}]", each) for k, each in enumerate(noise)),
            restart_s=restart_s,
            policy_restart_s=_positive(f"{where}.policy_restart_s", fields.get("policy_restart_s", restart_s)),
            slowdown=_positive(f"{where}.slowdown", fields.get("slowdown", 1.0)),
            gpus=MappingProxyType({str(k): _profile(f"{where}.gpus.{k}", each) for k, each in gpus.items()}),
        )
    except InvalidDataError as error:
        raise InvalidDataError(f"{where}: {error}") from error


def _profile(where: str, entry: Any) -> GpuProfile:
    fields = check_fields(where, entry, (*CONSTANTS, *LOCAL))
    constants = [_positive(f"{where}.{name}", fields[name]) for name in CONSTANTS]
    least, most = (read_count(f"{where}.{name}", fields[name], 1) for name in LOCAL)
    return GpuProfile(ThroughputParameters(*constants), least, most)


def _positive(where: str, value: Any) -> float:
    """Return a finite positive number; accepts text such as 1e7, which YAML does not read as a number."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return read_positive(where, value)
