"""The experiments of paper 004 again: what order costs in memory, latency and rate. `python -m benchmarks.oop docs` runs all."""
