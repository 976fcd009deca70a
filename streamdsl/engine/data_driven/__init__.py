"""The parts of operators over data-driven windows: boundaries in order of time, their totals, timers, and codes of groups."""
