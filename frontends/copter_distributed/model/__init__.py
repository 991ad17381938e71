"""The model of a distributed session: edits and look-ups, routed to the shards by id."""
