"""Names that users give: normalized to `str`, and quoted where code is generated."""

from __future__ import annotations


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
