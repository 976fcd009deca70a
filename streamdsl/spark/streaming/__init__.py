"""Queries as streams of Spark: the local engine in shards by key, each with its state in Spark's state store."""
