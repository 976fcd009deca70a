"""What the operators of snapshot and session windows are made of: boundaries, sessions and their sums in order of time, swept."""
