"""The laws of user-defined modules, in the order in which they are tried: what a law takes for granted is tried before it."""

from streamdsl.testing.laws import answers, claims, rows, states, streams
from streamdsl.testing.laws.law import Law

LAWS: tuple[Law, ...] = (*answers.LAWS, *states.LAWS, *claims.LAWS, *streams.LAWS)
"""The laws of modules over windows."""
LAWS_IN_ORDER: tuple[Law, ...] = (*rows.LAWS, *streams.LAWS)
"""The laws of stream operators."""

__all__ = ["LAWS", "LAWS_IN_ORDER", "Law"]
