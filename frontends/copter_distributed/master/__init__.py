"""The restricted master: a session over the columns that shards have sent, its bound and its answers."""
