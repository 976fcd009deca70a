"""From text to trees, and errors that show the place in the text."""

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
    """The text of a query, which errors show."""

    text: str

    def refused(self, part: Any, problem: str, hint: str | None = None) -> SqlError:
        """Return the error that shows where a part of the query is."""
        place = part if hasattr(part, "start_pos") else part.meta
        return SqlError(problem, self.text, getattr(place, "start_pos", 0), getattr(place, "end_pos", None), hint=hint)

    @contextmanager
    def at(self, part: Any) -> Iterator[None]:
        """Let errors of what is made of a part of the query show where it is."""
        try:
            yield
        except SqlError:
            raise
        except (QueryError, UnitError, TimeOverflow) as error:
            problem = str(error).removesuffix(f"\nHint: {error.hint}")
            raise self.refused(part, problem, error.hint) from None

    @contextmanager
    def called(self, call: Any) -> Iterator[None]:
        """Let errors of a call show where it is, that of a wrong number of values too."""
        with self.at(call):
            try:
                yield
            except StreamDslError:
                raise
            except TypeError as error:
                raise self.refused(call, f"{name_of(call.children[0])} cannot be called so: {error}") from error

    def of(self, part: Any) -> str:
        """Return a part of the query as it is written."""
        place = part if hasattr(part, "start_pos") else part.meta
        return self.text[place.start_pos : place.end_pos]


def parse(text: Text) -> Any:
    """Return the tree of a program; raises `SqlError` at what does not belong where it is."""
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
        found = "this text has no end" if word == "'" else f"{word!r} does not belong here"
        hint = _hint(text.text, at, error.allowed)
        raise SqlError(found, text.text, at, at + len(word), hint=hint) from None


def _word(text: str, at: int) -> str:
    """Return the word at a place, or the character."""
    found = re.match(r"\w+|.", text[at:], re.DOTALL)
    return found.group() if found else ""


def _hint(text: str, at: int, terminals: Any) -> str:
    """Return what to write instead of the word at a place, or what may stand there."""
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
    """Return a name without its quotes."""
    text = str(token)
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def inside(tree: Any, rule: str) -> Iterator[Any]:
    """Yield the parts of a tree that a rule has made, outer ones first; none of the queries within it."""
    if getattr(tree, "data", None) == rule:
        yield tree
    for child in getattr(tree, "children", ()):
        if getattr(child, "data", "union") not in ("union", "nested"):
            yield from inside(child, rule)
