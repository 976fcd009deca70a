"""User-defined modules."""
