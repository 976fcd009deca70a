"""Today's engines as black boxes: which settings of SECRET explain them (docs/secret-profiles.md)."""
