"""What a name and a dot are completed to in a shell or a notebook."""

from __future__ import annotations

from typing import ClassVar


class Completed:
    """A base class whose `dir` lists what users type: public names but those in `_internal`, which the package calls itself.

    >>> class Meter(Completed):
    ...     _internal = frozenset({"reset"})
    ...     def read(self): ...
    ...     def reset(self): ...
    >>> dir(Meter())
    ['read']
    """

    __slots__ = ()
    _internal: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> list[str]:
        hidden = frozenset().union(*(vars(cls).get("_internal", ()) for cls in type(self).__mro__))
        return sorted(name for name in super().__dir__() if not name.startswith("_") and name not in hidden)
