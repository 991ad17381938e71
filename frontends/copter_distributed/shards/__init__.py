"""Shards: models with a share of the requests each, and calls to them that survive lost shards."""
