"""Classes by their names: those that the query declares, the engine's own, and plain types; nothing is imported."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import NoneType
from typing import Any, Final

from sortedcontainers import SortedDict

from streamdsl.engine.state.attributes import is_state
from streamdsl.errors import CheckpointError
from streamdsl.temporal.payload import Record


def name_of(cls: Any) -> str:
    """Return the name that stands for a class.

    >>> from fractions import Fraction
    >>> name_of(Fraction)
    'fractions:Fraction'
    """
    return f"{cls.__module__}:{cls.__qualname__}"


_COLLECTIONS: Final = (list, dict, set, frozenset, tuple, Counter, OrderedDict, defaultdict, deque, SortedDict)
_SCALARS: Final = (NoneType, object, bool, int, float, complex, str, bytes, range, Decimal, Fraction)
_TIMES: Final = (datetime, date, time, timedelta, timezone)
_PLAIN: Final = {name_of(cls): cls for cls in (*_COLLECTIONS, *_SCALARS, *_TIMES, Record)}


class Classes:
    """The classes that a checkpoint may name. With `anywhere` also those that are loaded: what a job keeps for itself.

    >>> class Local: ...
    >>> Classes([Local]).found(name_of(Local)) is Local
    True
    >>> Classes().found("subprocess:Popen")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    streamdsl.errors.CheckpointError: the checkpoint holds values of subprocess:Popen, which the query does not declare
    Hint: sd.source(name, Popen) declares a payload, state_types = (Popen,) what a module keeps, restore(path, types=[Popen]) ...
    """

    def __init__(self, declared: Iterable[type] = (), anywhere: bool = False) -> None:
        self._declared = {name_of(cls): cls for cls in declared}
        self._anywhere = anywhere

    def name(self, cls: type) -> str:
        """Return a class's name; raises `CheckpointError` for one that would not be found again by it."""
        name = name_of(cls)
        if self._look_up(name) is not cls:
            raise CheckpointError(f"it holds the class {name}, which the query does not declare", hint=_declaration(name, cls))
        return name

    def found(self, name: str) -> Any:
        """Return the class that has a name; raises `CheckpointError` where it is none of these."""
        cls = self._look_up(name)
        if cls is None:
            raise CheckpointError(
                f"the checkpoint holds values of {name:.200}, which the query does not declare", hint=_declaration(name)
            )
        return cls

    def _look_up(self, name: str) -> Any:
        cls = self._declared.get(name) or _PLAIN.get(name) or _of_the_engine(name)
        return _at(name) if cls is None and self._anywhere else cls


def _declaration(name: str, cls: Any = None) -> str:
    word = name.rpartition(".")[2].rpartition(":")[2][:80]
    where = "restore(path, types=[...])" if cls is None else "checkpoint(path, types=[...]) and restore(path, types=[...])"
    return (
        f"sd.source(name, {word}) declares a payload, state_types = ({word},) what a module keeps, "
        f"{where.replace('...', word)} all else"
    )


def is_at_its_name(cls: type) -> bool:
    """Say whether a class is what its module has under its name.

    >>> is_at_its_name(int), is_at_its_name(type("Made", (), {}))
    (True, False)
    """
    return _at(name_of(cls)) is cls


def _of_the_engine(name: str) -> Any:
    """Return a class of the engine's own by its name: of its state, a named tuple, or an enumeration."""
    module, _, word = name.partition(":")
    if not module.startswith("streamdsl.") or module not in sys.modules:
        return None
    cls = vars(sys.modules[module]).get(word)
    if not isinstance(cls, type) or name_of(cls) != name:
        return None
    return cls if is_state(cls) or issubclass(cls, Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields")) else None


def _at(name: str) -> Any:
    if name == "builtins:NoneType":
        return NoneType
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and name_of(found) == name else None
