"""The operators of the engine, one file for each family."""
