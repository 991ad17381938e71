"""`copter shadow`: watches another scheduler's cluster, changes nothing, and reports what it leaves unused."""
