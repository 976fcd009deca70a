"""The local engine: columnar batches of changes through operators, minimal changes out."""
