"""Names that users give: exact texts where they come in, and literals where code is generated."""

from __future__ import annotations


def exact(name: str) -> str:
    """Return a name as exactly a `str`: a member of an enum of texts, or numpy's text, is the text that it holds.

    >>> from enum import StrEnum
    >>> type(exact(StrEnum("Zone", ["A"]).A))
    <class 'str'>
    """
    return name if type(name) is str else str.__str__(name)


def literal(name: str) -> str:
    r"""Return the literal that stands for a name in generated code; nothing else may put a name there.

    >>> print(literal("it's"), literal("a\nb"))
    "it's" 'a\nb'
    """
    return ascii(exact(name))
