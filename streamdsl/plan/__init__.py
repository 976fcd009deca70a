"""The plan of a query: the operators of the temporal algebra, the facts about them, and plans as text."""
