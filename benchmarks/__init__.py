"""Benchmarks: `python -m benchmarks windows` prints one table. CPU time, one thread; read a figure as +-20 %."""
