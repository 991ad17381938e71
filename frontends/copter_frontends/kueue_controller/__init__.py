"""A controller that writes what Kueue lets others decide, by copter's plans."""
