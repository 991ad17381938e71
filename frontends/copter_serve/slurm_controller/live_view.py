"""A live Slurm as the view that `copter shadow --slurm` has of two files."""

from __future__ import annotations

import json
from pathlib import Path

from copter_serve.slurm_controller.doors import Door
from copter_serve.views import ClusterView
from copter_serve.views.slurm import slurm_view


def live_view(door: Door, folder: Path) -> ClusterView:
    """Return the view of a Slurm now; its documents are left in a folder, as squeue.json and sinfo.json."""
    jobs, nodes = door.documents()
    (folder / "squeue.json").write_text(json.dumps({"jobs": jobs}))
    (folder / "sinfo.json").write_text(json.dumps({"nodes": nodes}))
    return slurm_view(str(folder / "squeue.json"), str(folder / "sinfo.json"))
