"""Integer points of general programs: heuristics around LP relaxations, with a certified bound (method/integer.md)."""
