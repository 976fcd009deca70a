"""The published algorithm, event by event: the second reference that frames are held to, after every push (paper 001, V).

No query needs it: `engine_options={"window": "general"}` runs it.
"""
