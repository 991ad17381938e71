"""A controller that carries out copter's plans through the fields that Kueue lets others write."""
