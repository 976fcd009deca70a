"""What the columnar window operator is made of: exact sums in totals, slots for windows, and the ring of windows to come."""
