"""Parsing, and errors that show their place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from streamdsl.errors import QueryError, SqlError, StreamDslError, TimeOverflow, UnitError
from streamdsl.extras import need
from streamdsl.sql.grammar import GRAMMAR, INSTEAD, SIGNS

if TYPE_CHECKING:
    from lark import Lark


@dataclass(frozen=True)
class Text:
    """The text of a query; its methods attach places in it to errors."""

    text: str

    def refused(self, part: Any, problem: str, hint: str | None = None) -> SqlError:
        """Return an error that shows a part of the query."""
        place = part if hasattr(part, "start_pos") else part.meta
        return SqlError(problem, self.text, getattr(place, "start_pos", 0), getattr(place, "end_pos", None), hint=hint)

    @contextmanager
    def at(self, part: Any) -> Iterator[None]:
        """Turn errors raised inside into `SqlError`s that show this part of the query."""
        try:
            yield
        except SqlError:
            raise
        except (QueryError, UnitError, TimeOverflow) as error:
            problem = str(error).removesuffix(f"\nHint: {error.hint}")
            raise self.refused(part, problem, error.hint) from None

    @contextmanager
    def called(self, call: Any) -> Iterator[None]:
        """Turn errors of a function call, also those about its arguments, into `SqlError`s that show it."""
        with self.at(call):
            try:
                yield
            except StreamDslError:
                raise
            except TypeError as error:
                raise self.refused(call, f"{name_of(call.children[0])} cannot be called like this: {error}") from error

    def of(self, part: Any) -> str:
        """Return the text of a part of the query."""
        place = part if hasattr(part, "start_pos") else part.meta
        return self.text[place.start_pos : place.end_pos]


def parse(text: Text) -> Any:
    """Return the syntax tree of a program; raises `SqlError` at the first unexpected word."""
    need("lark", "queries in SQL", "sql")
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    try:
        return _parser().parse(text.text)
    except UnexpectedToken as error:
        at = len(text.text) if error.token.type == "$END" else error.token.start_pos or 0
        found = "the query ends here" if error.token.type == "$END" else f"{str(error.token)!r} does not belong here"
        raise SqlError(found, text.text, at, hint=_hint(text.text, at, error.accepts or error.expected)) from None
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        word = _word(text.text, at)
        found = "this text has no closing quote" if word == "'" else f"{word!r} does not belong here"
        hint = _hint(text.text, at, error.allowed)
        raise SqlError(found, text.text, at, at + len(word), hint=hint) from None


def _word(text: str, at: int) -> str:
    """Return the word at a position, or the character if there is no word."""
    found = re.match(r"\w+|.", text[at:], re.DOTALL)
    return found.group() if found else ""


def _hint(text: str, at: int, terminals: Any) -> str:
    """Return the hint for an unexpected word: its replacement if it is known, else the expected terminals."""
    word = _word(text, at)
    if set(terminals or ()) == {"ALL"}:
        word = text[:at].split()[-1]
    elif text[at - 1 : at + 1] == "==":
        word = "=="
    return INSTEAD.get(word.upper()) or _expected(terminals)


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(GRAMMAR, start="program", parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _expected(terminals: Any) -> str:
    names = sorted({SIGNS.get(name, name.lstrip("_")) for name in terminals or () if not name.startswith("__")})
    return f"expected {' or '.join(names)}"


def name_of(token: Any) -> str:
    """Return the name of a token, without quotes."""
    text = str(token)
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def inside(tree: Any, rule: str) -> Iterator[Any]:
    """Yield the subtrees of a rule, outer ones first, without those in nested queries."""
    if getattr(tree, "data", None) == rule:
        yield tree
    for child in getattr(tree, "children", ()):
        if getattr(child, "data", "union") not in ("union", "nested"):
            yield from inside(child, rule)
