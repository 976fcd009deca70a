"""What the law of tracing is tried on: payloads, lambdas by what they do, and the law itself (`../test_tracing.py` tries it)."""
