"""Models of papers, one room each. They use the core, which knows none of them; `streamdsl.secret` and its like are short names.

paper 000   secret          how other engines run a windowed query
paper 002   cql             streams, relations, and batches
paper 003   astral          window sequences, which queries run: their descriptions are the core's, in `streamdsl.windows`
paper 004   out_of_order    operators fed by hand, to see what order costs; by its short name `streamdsl.progress`
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamdsl.papers import astral, cql, out_of_order, secret
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'streamdsl.papers' has no attribute {name!r}", name=name)
        return import_module(f"streamdsl.papers.{name}")


def __dir__() -> list[str]:
    return list(__all__)


__all__ = ["astral", "cql", "out_of_order", "secret"]
