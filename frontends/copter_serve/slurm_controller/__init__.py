"""Starts jobs of a Slurm cluster by copter's plans, with leases that fail open."""
