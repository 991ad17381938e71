"""Views of other schedulers' clusters, read from the documents of Kueue, Volcano, KAI and Slurm."""

from copter_serve.views.view import ClusterView, ViewError, WatchedJob

__all__ = ["ClusterView", "ViewError", "WatchedJob"]
