"""A live Slurm as the view that `copter shadow --slurm` has of two files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from copter_frontends.slurm_controller.doors import Door
from copter_frontends.slurm_controller.reading import NodeNow, node_now
from copter_frontends.views import ClusterView
from copter_frontends.views.slurm import slurm_view


def live_view(door: Door, folder: Path) -> ClusterView:
    """Return the view of a Slurm now; its documents are left in a folder, as squeue.json and sinfo.json."""
    jobs, nodes = door.documents()
    (folder / "squeue.json").write_text(json.dumps({"jobs": jobs}))
    (folder / "sinfo.json").write_text(json.dumps({"nodes": nodes, "sinfo": _summary(nodes)}))
    return slurm_view(str(folder / "squeue.json"), str(folder / "sinfo.json"))


def _summary(nodes: list[Any]) -> list[dict[str, Any]]:
    """Return what releases from 23.02 on print as `sinfo --json`: a node in each of its partitions."""
    read: list[tuple[Any, NodeNow]] = [(each, node_now(each)) for each in nodes]
    return [
        {
            "partition": {"name": name}, "nodes": {"nodes": [node.name]}, "node": {"state": _states(each)},
            "cpus": {"maximum": each.get("cpus")}, "gres": {"total": each.get("gres")},
        }
        for each, node in read
        for name in sorted(node.partitions)
    ]  # fmt: skip


def _states(node: Any) -> list[str]:
    told = node.get("state")
    return [
        str(each).upper() for each in [*(told if isinstance(told, list) else [told]), *(node.get("state_flags") or [])]
    ]
