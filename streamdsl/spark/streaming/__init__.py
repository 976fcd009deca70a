"""Streaming queries on Spark: shards of the local engine, partitioned by key, each with its state in Spark's state store."""
