"""The parts of the columnar window operator: exact totals, slots for windows, and the deltas of windows that are not open yet."""
