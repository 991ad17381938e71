"""A linear program, what a solution of it is, and the engine's own checker."""
