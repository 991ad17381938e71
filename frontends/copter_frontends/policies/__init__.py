"""The schedulers, independent of each other, and their names (``registry``)."""
