"""The asv suite: `time_*` for speed, `track_*` for what the speed was bought with."""
