"""What the buffered window operator is made of: rows in columns and in sorted runs, and modules that are given views of them."""
