"""Queries in SQL: `sd.sql("SELECT ...", trips=stream)` builds the same plans as the methods of streams."""

from __future__ import annotations

from typing import Any

from streamdsl.errors import QueryError
from streamdsl.sql.parsing import Text, name_of, parse
from streamdsl.sql.reading import read
from streamdsl.sql.selecting import Selecting


def sql(text: str, /, *groups: Any, **given: Any) -> Any:
    """Return the query of an SQL text over named streams.

    Without batches it is a `Stream`: rows keep their lifetimes, or get those of a window such as `[RANGE 10 SLIDE 5]`; joins are
    temporal; aggregates are over snapshots, or over `TUMBLE`, `HOP`, `SESSION` in GROUP BY; ISTREAM gives points at LE, DSTREAM
    at RE. With SPREAD, `[ROWS 3]` and the like, or over streams of a `cql` group, it is a `cql.Relation` or `cql.BatchStream`.
    The arguments are streams, and the functions (`sd.udf`) and aggregates (`UDA`) that the query calls by name. Raises
    `SqlError`, which shows the place in the text.

    >>> import streamdsl as sd
    >>> rows = [(1, 2, {"zone": "A", "fare": 10.0}), (3, 4, {"zone": "B", "fare": 4.0}), (8, 9, {"zone": "A", "fare": 7.0})]
    >>> trips = sd.from_rows(rows)
    >>> sd.sql("SELECT zone, avg(fare) AS mean FROM trips WHERE fare > 5 GROUP BY zone, TUMBLE(10)", trips=trips).run().cht()
    CHT
      [0, 10) zone='A' mean=8.5
    >>> sd.sql("ISTREAM (SELECT sum(fare) AS total FROM trips [ROWS 2])", trips=trips).events()
    [((1, 1), Record(total=10.0)), ((3, 1), Record(total=14.0)), ((8, 1), Record(total=11.0))]
    >>> sd.sql("SELECT zone FROM trip", trips=trips)
    Traceback (most recent call last):
        ...
    streamdsl.errors.SqlError: there is no stream 'trip'; there are: trips
      line 1: SELECT zone FROM trip
                               ^^^^
    Hint: did you mean 'trips'?
    """
    if not isinstance(text, str):
        raise QueryError(f"{text!r} is not the text of a query", hint='sd.sql("SELECT * FROM S", S=stream)')
    try:
        return _query(Text(text), groups, given)
    except RecursionError:
        raise QueryError(
            "the query is nested too deeply to be read", hint="give subqueries names: t = SELECT ...; SELECT ... FROM t"
        ) from None


def _query(written: Text, groups: tuple[Any, ...], given: dict[str, Any]) -> Any:
    tree = parse(written)
    sources = read(written, tree, groups, given)
    selecting = Selecting(written, sources)
    *statements, query = tree.children
    for statement in statements:
        if statement.data == "spread":
            sources.spread(statement)
        else:
            sources.named[name_of(statement.children[0])] = selecting.query(statement.children[1])
    return selecting.query(query)


__all__ = ["sql"]
