"""`copter shadow`: watches another scheduler's cluster, decides nothing, and says what its decisions leave unused."""
