"""Clusters of other schedulers as copter sees them: Kueue, Volcano, KAI and Slurm, from their own documents."""

from copter_frontends.views.view import ClusterView, ViewError, WatchedJob

__all__ = ["ClusterView", "ViewError", "WatchedJob"]
