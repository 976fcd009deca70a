"""The laws of user-defined modules, in the order in which they are tried: what a law takes for granted is tried before it."""

from streamdsl.testing.laws import claim_laws, query_laws, result_laws, state_laws, stream_operator_laws
from streamdsl.testing.laws.law import Law

LAWS: tuple[Law, ...] = (*result_laws.LAWS, *state_laws.LAWS, *claim_laws.LAWS, *query_laws.LAWS)
"""The laws of modules over windows."""
LAWS_IN_ORDER: tuple[Law, ...] = (*stream_operator_laws.LAWS, *query_laws.LAWS)
"""The laws of stream operators."""

__all__ = ["LAWS", "LAWS_IN_ORDER", "Law"]
