"""Data in and out: what a source can be bound to, and the frames that results come out as."""
