"""copter in the place of other schedulers' policies, each in its own calling convention (docs/reference/service.md)."""
