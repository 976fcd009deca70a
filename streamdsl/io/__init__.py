"""Input and output: readers of events, rows, frames and files, and the conversion of results to frames."""
