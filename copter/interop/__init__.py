"""Other solvers and formats; each needs its own optional package."""
