"""Called by other compiled modules only."""
