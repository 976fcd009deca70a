"""Queries as jobs of the command line: files in, files out, once or as a stream (docs/jobs.md)."""
