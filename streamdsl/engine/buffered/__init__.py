"""The parts of composed window operators: rows in columns and in sorted runs, and the modules that read them."""
