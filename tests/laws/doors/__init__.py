"""The law from door to door: what users push in, through a query and a session's mishaps, is what they read from the sink."""
