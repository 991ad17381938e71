"""What travels between a coordinator and its shards: plain values, counted; terms, errors."""
