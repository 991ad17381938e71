"""The commands of ``copter`` that serve or watch a cluster."""
