"""Linear programs, their solutions, and the engine's own checker."""
