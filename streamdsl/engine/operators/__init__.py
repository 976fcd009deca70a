"""One file per family of operators."""
