"""The options of commands that read files: the query, its inputs, and the columns of their lifetimes."""

from __future__ import annotations

import argparse
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.jobs.input_files import JobInput, inputs_of, with_lifetime_columns
from streamdsl.jobs.mistakes import Mistakes
from streamdsl.naming import named_query
from streamdsl.running import runnable_sources
from streamdsl.stream import Stream


def add_query_options(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add the query, which a job of a file may name, and the columns of the lifetimes of its sources."""
    add = parser.add_argument
    add(
        "query",
        nargs="?" if is_optional else None,
        metavar="module:query",
        help="a query, by its name in a module that can be imported",
    )
    add("--start", action="append", default=[], metavar="[NAME=]COLUMN", help="the column of LEs in the inputs, or in one's")
    add("--end", action="append", default=[], metavar="[NAME=]COLUMN", help="the column of REs; without it rows are points")


def add_input_options(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add the query and the options that say what its sources read."""
    add_query_options(parser, is_optional=is_optional)
    add = parser.add_argument
    add("--input", action="append", default=[], metavar="NAME=PATH", help="a file or a folder that a source reads; once for each")
    add("--until", type=ticks_or_text, metavar="TIME", help="where a run over unending rows ends")


def query_and_inputs(
    options: argparse.Namespace, command: str, mistakes: Mistakes, later: bool = False
) -> tuple[Stream[Any] | None, dict[str, JobInput]]:
    """Return the query, its sources with the columns that are asked for, and their inputs, whose files may come `later`.

    What is wrong with them is noted as mistakes; without a query that can run there are no inputs.
    """
    query = mistakes.of(query_of, options, command)
    named = None if query is None else mistakes.of(runnable_sources, query._node)
    if query is None or named is None:
        return query, {}
    return query, inputs_of(options.input, named, list(query._bindings), mistakes, later)


def query_of(options: argparse.Namespace, command: str) -> Stream[Any]:
    """Return the query that the options name, with the columns of lifetimes that they name."""
    if options.query is None:
        raise QueryError("no query is named", hint="streamdsl run module:query, or --job name")
    found = named_query(options.query, command)
    return Stream(with_lifetime_columns(found._node, options.start, options.end), found._bindings)


def ticks_or_text(text: str) -> int | str:
    """Return ticks as a number, durations and dates as they are.

    >>> ticks_or_text("60"), ticks_or_text("1d")
    (60, '1d')
    """
    try:
        return int(text)
    except ValueError:
        return text
