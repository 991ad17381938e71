"""`copter shadow`: watches another scheduler's cluster, changes nothing, and reports unused capacity."""
