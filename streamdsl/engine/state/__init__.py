"""The state of a running query as plain data, and back (docs/checkpoints.md).

A restored session lowers the same plan anew, and the saved state is laid over the fresh operators, attribute by attribute. What
comes from the query (expressions, modules, functions) is never saved: state refers to it by its number in the plan. So an
operator needs no code of its own; it must hold data only, no closures and no iterators.
"""
