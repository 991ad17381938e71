"""The coordinator, which keeps shards and master consistent, and the session that users have of it."""
