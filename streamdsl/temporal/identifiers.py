"""Names: those that users give as `str`, and quoted where code is generated; those of classes in snake case."""

from __future__ import annotations

import re
from functools import cache


def exact(name: str) -> str:
    """Return a name as a plain `str`: a member of a `StrEnum`, or a numpy text, becomes its text.

    >>> from enum import StrEnum
    >>> type(exact(StrEnum("Zone", ["A"]).A))
    <class 'str'>
    """
    return name if type(name) is str else str.__str__(name)


def literal(name: str) -> str:
    r"""Return the literal of a name for generated code. Every name in generated code passes this function, against injection.

    >>> print(literal("it's"), literal("a\nb"))
    "it's" 'a\nb'
    """
    return ascii(exact(name))


@cache
def snake(name: str) -> str:
    """Return a class name in snake case.

    >>> snake("GroupApply")
    'group_apply'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
