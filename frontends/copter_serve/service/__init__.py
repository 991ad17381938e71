"""`copter serve`: schedules clusters over HTTP (docs/reference/service.md)."""
