"""Plans cut into stages that run in shards: by local processes (`run(workers=n)`, `open(workers=n)`) and by streams on Spark."""
