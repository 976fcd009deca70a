"""The demo: a year of real flights out of New York, as streams, on the local engine and on Spark."""
