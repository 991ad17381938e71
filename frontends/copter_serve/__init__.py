"""copter as a service, and its links to cluster managers: queues, views, shadow, controllers, adapters."""
