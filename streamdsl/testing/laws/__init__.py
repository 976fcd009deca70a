"""The laws of user-defined modules, in the order in which they are tried: what a law takes for granted is tried before it."""

from streamdsl.testing.laws import answers, claims, states, streams
from streamdsl.testing.laws.law import Breach, Law

LAWS: tuple[Law, ...] = (*answers.LAWS, *states.LAWS, *claims.LAWS, *streams.LAWS)

__all__ = ["LAWS", "Breach", "Law"]
