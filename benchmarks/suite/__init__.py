"""The asv suite: `time_*` for speed, `track_*` beside it for what the speed was bought with."""
