"""Checks of this installation, one finding each, with advice.

``python -m copter.testing.doctor`` and ``copter doctor`` print them.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from copter.model.matrix import price
from copter.model.model import Model
from copter.problem.solution import Status
from copter.runtime.processor import LEVELS, ROOM, processor_level
from copter.runtime.settings import available_threads
from copter.runtime.version import VERSION
from copter.session.session import Session

LEAST = {"numpy": (2, 0), "scipy": (1, 13)}
OPTIONAL = {
    "highs": ("highspy",),
    "frontends": ("numba",),
    "report": ("pyarrow", "matplotlib", "jinja2"),
    "cvxpy": ("cvxpy",),
    "linopy": ("linopy",),
    "pyomo": ("pyomo",),
    "pulp": ("pulp",),
    "serve": ("starlette", "uvicorn", "httptools", "prometheus-client"),
    "kubernetes": ("kubernetes",),
}  # packages of each extra that are looked for
REQUESTS, COLUMNS, RESOURCES = 2000, 24, 12  # size of the reference solve
SLOW_S = 2.0  # `copter doctor` calls a machine slow if the cold reference solve takes more seconds than this


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: its subject, the value found, whether it is right, and advice."""

    name: str
    found: str
    well: bool = True
    advice: str = ""


def examine() -> list[Finding]:
    """Return all findings; a check that fails counts as a bad finding."""
    looks: list[tuple[str, Callable[[], Finding]]] = [
        ("copter", of_copter),
        ("numpy", lambda: of_package("numpy")),
        ("scipy", lambda: of_package("scipy")),
        ("optional", of_optional),
        ("threads", of_threads),
        ("OpenMP", of_openmp),
        ("instruction set", of_instructions),
        ("reference solve", of_solve),
    ]
    findings = []
    for name, look in looks:
        try:
            findings.append(look())
        except Exception as error:  # an error of a check is a finding
            findings.append(Finding(name, f"{type(error).__name__}: {error}", False, "reinstall copter-lp"))
    return findings


def of_copter() -> Finding:
    """Report copter's version and folder."""
    place = Path(__file__).parent
    return Finding("copter", f"{VERSION} in {place}, Python {platform.python_version()}")


def of_package(name: str) -> Finding:
    """Check that a required package is installed."""
    found = version(name)
    numbers = tuple(int(part) for part in found.split(".")[:2])
    well = numbers >= LEAST[name]
    advice = "" if well else f"pip install '{name}>={'.'.join(map(str, LEAST[name]))}'"
    return Finding(name, found, well, advice)


def of_optional() -> Finding:
    """Report the optional packages that are there, and the extras that would bring the others."""
    found: list[str] = []
    missing: dict[str, list[str]] = {}
    for extra, names in OPTIONAL.items():
        for name in names:
            try:
                found.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                missing.setdefault(extra, []).append(name)
    lacking = "; ".join(f"{', '.join(names)} (extra {extra})" for extra, names in missing.items())
    advice = f"if you need them: pip install 'copter-lp[{','.join(missing)}]'" if missing else ""
    return Finding("optional", f"{', '.join(found) or 'none'}; not there: {lacking or 'none'}", True, advice)


def of_threads() -> Finding:
    """Report the threads of a solve, and the machine's load."""
    threads = available_threads()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    advice = ""
    if load > 1.5 * threads:
        advice = f"the machine is busy (load {load:.1f} on {threads} threads): times will be longer than they could be"
    elif os.environ.get("OMP_WAIT_POLICY", "passive").lower() == "active":
        advice = "OMP_WAIT_POLICY=active keeps threads spinning: unset it where other work shares the machine"
    return Finding("threads", f"{threads} of {os.cpu_count()} processors, load {load:.1f}", True, advice)


def of_openmp() -> Finding:
    """Report the OpenMP runtimes in this process, after a solve."""
    reference(10)
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return Finding("OpenMP", "cannot be told on this system")
    names = {Path(line.split()[-1]).name for line in maps.read_text().splitlines() if "/" in line}
    found = sorted(name for name in names if "gomp" in name or "libomp" in name or "iomp" in name)
    advice = "several OpenMP runtimes in one process can wait for each other" if len(found) > 1 else ""
    if not found:
        advice = "built without OpenMP: solves take one thread; build with a compiler that has -fopenmp"
    return Finding("OpenMP", ", ".join(found) or "none", True, advice)


def level_of_build(extension: Path, room: Path = ROOM) -> str:
    """Return the level of x86-64 for which a wheel's extension was built; empty for a build for one machine."""
    if extension.is_relative_to(room):
        return extension.relative_to(room).parts[0]
    return next(iter(LEVELS)) if room.is_dir() else ""


def of_instructions() -> Finding:
    """Report the processor's level and the level for which the extensions were built."""
    level = processor_level()
    if level is None and platform.machine() not in ("x86_64", "AMD64"):
        return Finding("instruction set", platform.machine() or sys.platform)
    build = level_of_build(Path(price.__file__ or ""))
    built = f"the wheel's build for {build}" if build else "one build, for the processor that built it or below"
    advice = "" if level else "a processor without SSE4.2: solves take several times as long"
    return Finding("instruction set", f"processor {level or 'x86-64'}; {built}", True, advice)


def of_solve() -> Finding:
    """Time a cold and a warm solve, and check both."""
    cold_s, warm_s, well = reference(REQUESTS)
    advice = ""
    if not well:
        advice = "the solve did not end optimal: please report this with the lines above"
    elif cold_s > SLOW_S:
        advice = "slow: look at the load, and at limits on this process's processors"
    found = f"{REQUESTS * COLUMNS:,} columns: cold {1e3 * cold_s:.0f} ms, after an edit {1e3 * warm_s:.1f} ms"
    return Finding("reference solve", found, well, advice)


def reference(requests: int) -> tuple[float, float, bool]:
    """Return (seconds cold, seconds after one request left, whether both solves were optimal)."""
    rng = np.random.default_rng(0)
    model = Model()
    for resource in range(RESOURCES):
        model.set_count(resource, 0.05 * requests)
    usage = {
        r: np.where(np.arange(COLUMNS) % RESOURCES == r, 1.0 + np.arange(COLUMNS) // RESOURCES, 0.0)
        for r in range(RESOURCES)
    }
    template = model.add_template(usage)
    model.add_requests(list(range(requests)), rng.uniform(1.0, 2.0, (requests, COLUMNS)), template=template)
    session = Session(model)
    started = time.perf_counter()
    first = session.solve()
    cold_s = time.perf_counter() - started
    model.remove_request(0)
    started = time.perf_counter()
    second = session.solve()
    warm_s = time.perf_counter() - started
    return cold_s, warm_s, first.status is second.status is Status.OPTIMAL


def main() -> int:
    """Print a line for each finding; return 0 if all is well, 1 if something is broken."""
    findings = examine()
    for each in findings:
        print(f"{'ok  ' if each.well else 'BAD '} {each.name:16} {each.found}")
        if each.advice:
            print(f"     {'':16} {each.advice}")
    return 0 if all(each.well for each in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
