"""Scalar expressions: nodes, traces of lambdas, and what they evaluate to."""
