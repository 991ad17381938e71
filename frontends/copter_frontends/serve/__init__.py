"""`copter serve`: schedules clusters over HTTP (docs/serve.md)."""
