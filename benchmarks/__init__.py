"""Benchmarks: `python -m benchmarks` runs streamdsl beside its peers, checks every answer and prints CPU time per event.

A workload (`workloads/`) says what is computed, on which data, what the answer is, and how each peer is asked for it. A peer
(`peers/`) is a way to hand it the input and to read its answer; both are outside the time that is measured.
"""
