"""Plans on Spark."""
