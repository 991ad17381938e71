"""GPUs that KAI shares by parts: what pods ask for, and the arrangements of the parts in use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from copter_serve.queues.quantities import quantity
from copter_serve.views.documents import Document, part
from copter_serve.views.view import ViewError

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"  # annotations of pods
MEMORY_LABEL = "nvidia.com/gpu.memory"  # label of nodes: memory of one GPU in MiB
GROUP = "runai-gpu-group"  # label of pods: the GPU that they share; for several "runai-gpu-group/NAME"
RESERVING = ("kai-resource-reservation", "runai-reservation")  # namespaces of pods that stand for a shared GPU
ROUNDED = 100.0  # KAI rounds a GPU's memory down to multiples of this
MOST_UNKNOWN = 6  # most parts on GPUs that are not told for which all arrangements are looked at
MOST_ARRANGEMENTS = 64


def is_reservation(pod: Document) -> bool:
    """Whether a pod only stands for a GPU whose parts others use."""
    return part(pod, "metadata", "namespace") in RESERVING or part(pod, "metadata", "labels", "app") in RESERVING


def memory_of(labels: Mapping[str, str]) -> float:
    """Return the memory of a node's GPUs in MiB; 0 if it is not told."""
    told = labels.get(MEMORY_LABEL, "")
    return math.floor(int(told) / ROUNDED) * ROUNDED if told.isdecimal() and len(told) < 16 else 0.0


def shared_of(where: str, notes: Mapping[str, Any]) -> tuple[float, float, int]:
    """Return the part of a GPU, or the memory in MiB, that a pod asks for, and on how many GPUs; ViewError if it cannot
    be read.
    """
    if FRACTION not in notes and MEMORY not in notes:
        return 0.0, 0.0, 0
    count = quantity(f"{where} {DEVICES}", notes.get(DEVICES, "1"))
    if count != math.floor(count) or count < 1.0:
        raise ViewError(f"{where} {DEVICES}: {notes[DEVICES]!r} must be a whole number of 1 or more")
    if FRACTION in notes:
        share = quantity(f"{where} {FRACTION}", notes[FRACTION])
        if not 0.0 < share <= 1.0:
            raise ViewError(f"{where} {FRACTION}: {notes[FRACTION]!r} must be above 0 and at most 1")
        return share, 0.0, int(count)
    memory = quantity(f"{where} {MEMORY}", notes[MEMORY])
    if memory <= 0.0:
        raise ViewError(f"{where} {MEMORY}: {notes[MEMORY]!r} must be above 0")
    return 0.0, memory, int(count)


def groups_of(pod: Document) -> list[str]:
    """Return the names of the shared GPUs that a pod uses; none if they are not told."""
    labels = part(pod, "metadata", "labels") or {}
    several = sorted(str(name).partition("/")[2] for name in labels if str(name).startswith(f"{GROUP}/"))
    return several or ([str(labels[GROUP])] if labels.get(GROUP) else [])


def is_idle_reserved(using: Sequence[Document], reserving: Sequence[Document]) -> bool:
    """Whether one of a node's reservations is for a GPU whose parts no pod uses, as far as the pods tell."""
    used = [groups_of(pod) for pod in using]
    reserved = {group for pod in reserving for group in groups_of(pod)}
    return all(used) and bool(reserved.difference(*used))


def arrangements(count: int, whole: int, parts: Sequence[tuple[float, int, Document]]) -> tuple[tuple[float, ...], ...]:
    """Return the free parts of a node's GPUs, in every arrangement that the documents allow.

    Parameters
    ----------
    count, whole : int
        The GPUs, and those that are in use as a whole.
    parts : sequence of (float, int, Document)
        The part of each GPU, the number of GPUs, and the pod.
    """
    known: dict[str, float] = {}
    unknown: list[float] = []
    for size, devices, pod in parts:
        groups = groups_of(pod)
        if len(groups) == devices:
            for name in groups:
                known[name] = known.get(name, 0.0) + size
        else:
            unknown += [size] * devices
    shared = [max(0.0, 1.0 - used) for used in known.values()]
    empty = count - whole - len(shared)
    if empty < 0:
        return ((0.0,) * count,)
    start = (*shared, *(1.0,) * empty)
    found = {tuple(sorted(start))}
    if len(unknown) > MOST_UNKNOWN:
        return ((0.0,) * whole + _apart(start, len(unknown)),)
    for size in sorted(unknown, reverse=True):
        more: set[tuple[float, ...]] = set()
        for world in found:
            for at, free in enumerate(world):
                if size <= free + 1e-9:
                    more.add(tuple(sorted((*world[:at], max(0.0, round(free - size, 12)), *world[at + 1 :]))))
        if not more or len(more) > MOST_ARRANGEMENTS:
            return ((0.0,) * whole + _apart(start, len(unknown)),)
        found = more
    return tuple((0.0,) * whole + world for world in sorted(found))


def _apart(free: Sequence[float], parts: int) -> tuple[float, ...]:
    """Return what surely is free if each of some parts may use up any GPU."""
    left = sorted(free)[: max(0, len(free) - parts)]
    return (*left, *(0.0,) * (len(free) - len(left)))
