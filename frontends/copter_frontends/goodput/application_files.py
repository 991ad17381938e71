"""Applications and GPU types from a YAML file (docs/method/goodput.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.applications import ALL_APPLICATIONS, Application, GpuProfile
from copter_frontends.goodput.bootstrap import bootstrapped
from copter_frontends.goodput.throughput import ThroughputParameters
from copter_frontends.vocabulary import InvalidClusterError
from copter_frontends.vocabulary.yaml_files import (
    Check,
    check_fields,
    load_yaml,
    read_count,
    read_entries,
    read_fields,
    read_number,
    read_word,
)

CONSTANTS = ("alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r", "gamma")
LOCAL = ("min_local_batch_size", "max_local_batch_size")


def _speeds(where: str, value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise InvalidClusterError(f"{where}: must be a mapping of applications to numbers, not {value!r}")
    return {name: read_number(f"{where}.{name}", each) for name, each in value.items()}


def _noise_scale(where: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) < 2:
        raise InvalidClusterError(f"{where}: must be a list of 2 or more numbers, not {value!r}")
    return tuple(read_number(f"{where}[{k}]", each) for k, each in enumerate(value))


def _profiles(where: str, value: Any) -> Mapping[str, GpuProfile]:
    if not isinstance(value, dict) or not value:
        raise InvalidClusterError(f"{where}: must be a mapping with at least one GPU type, not {value!r}")
    return MappingProxyType({str(kind): _profile(f"{where}.{kind}", each) for kind, each in value.items()})


def _profile(where: str, entry: Any) -> GpuProfile:
    fields = read_fields(where, entry, PROFILE)
    with _named(where):
        constants = ThroughputParameters(*(fields[name] for name in CONSTANTS))
        return GpuProfile(constants, *(fields[name] for name in LOCAL))


_size = partial(read_count, least=1)
PROFILE: Mapping[str, Check] = {**dict.fromkeys(CONSTANTS, read_number), **dict.fromkeys(LOCAL, _size)}
TYPE: Mapping[str, Check] = {"name": read_word, "like": read_word, "speed": read_number}
MORE_OF_TYPE: Mapping[str, Check] = {"speeds": _speeds, "memory": read_number}
APPLICATION: Mapping[str, Check] = {
    "name": read_word,
    "init_batch_size": _size,
    "max_batch_size": _size,
    "work_samples": read_number,
    "noise_scale": _noise_scale,
    "restart_s": read_number,
    "gpus": _profiles,
}
MORE_OF_APPLICATION: Mapping[str, Check] = {"policy_restart_s": read_number, "slowdown": read_number}
"""Fields of a file's entries, needed and optional, with their checks."""


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
    lists = check_fields(str(path), load_yaml(path), (), ("gpu_types", "applications"))
    types = read_entries(path, "gpu_types", lists.get("gpu_types", []), TYPE, MORE_OF_TYPE)
    made = read_entries(path, "applications", lists.get("applications", []), APPLICATION, MORE_OF_APPLICATION)
    result = dict(known)
    for where, fields in types:
        _add_type(where, fields, result)
    for where, fields in made:
        if fields["name"] in result:
            raise InvalidClusterError(f"{where}.name: there is an application {fields['name']!r} already")
        result[fields["name"]] = _application(where, fields)
    return MappingProxyType(result)


def _add_type(where: str, fields: Mapping[str, Any], applications: dict[str, Application]) -> None:
    """Give every application that runs on the type named by ``like`` a profile on the new type."""
    name, like, speeds = fields["name"], fields["like"], fields.get("speeds", {})
    modelled = {kind for application in applications.values() for kind in application.gpus}
    if name in modelled:
        raise InvalidClusterError(f"{where}.name: there is a GPU type {name!r} already")
    if like not in modelled:
        raise InvalidClusterError(f"{where}.like: no GPU type is called {like!r}; there are {', '.join(modelled)}")
    if not set(speeds) <= set(applications):
        raise InvalidClusterError(f"{where}.speeds: must be a mapping of applications to numbers, not {speeds!r}")
    for key, application in applications.items():
        profile = application.gpus.get(like)
        if profile is None:
            continue
        most = max(profile.min_local_batch_size, int(profile.max_local_batch_size * fields.get("memory", 1.0)))
        constants = bootstrapped(profile.parameters, 1 / speeds.get(key, fields["speed"]))
        made = GpuProfile(constants, profile.min_local_batch_size, most)
        applications[key] = replace(
            application, gpus=MappingProxyType({**application.gpus, name: made}), pipeline=_cut(application, name, like)
        )


def _cut(application: Application, name: str, like: str) -> Any:
    """Return the application's pipeline on a new type, with as many stages as on the type that it resembles."""
    pipeline = application.pipeline
    if pipeline is None or like not in pipeline.stages:
        return pipeline
    return replace(pipeline, stages=MappingProxyType({**pipeline.stages, name: pipeline.stages[like]}))


def _application(where: str, fields: Mapping[str, Any]) -> Application:
    given = {"policy_restart_s": fields["restart_s"], "slowdown": 1.0, **fields}
    with _named(where):
        return Application(**given)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Put an entry's position in the file before what a value's own check says."""
    try:
        yield
    except InvalidDataError as error:
        raise InvalidDataError(f"{where}: {error}") from error
