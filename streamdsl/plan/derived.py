"""Operators that are plans of other operators: outer joins, band joins, and filling gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Attribute, Binary, Constant, Expr, Field, Life, Make, Whole, schema_of
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.sides import PAIR, swapped, without_row
from streamdsl.plan.node import (
    AntiJoin,
    Calendar,
    Chop,
    Join,
    Matching,
    Node,
    Scan,
    Select,
    Union,
    alter_duration,
    alter_lifetime,
    shift,
)
from streamdsl.temporal import INFINITY
from streamdsl.windows import Hopping

if TYPE_CHECKING:
    from streamdsl.udm.stream_operator import Sieve

BandTime: TypeAlias = Literal["max", "min", "left", "right", "both"]
"""The lifetime of a band join's pair: a point at the later, earlier, left or right LE; "both": from one LE to the other."""
_BAND_TIMES: Final[tuple[BandTime, ...]] = get_args(BandTime)


def left_join(left: Node, right: Node, matching: Matching, projection: Expr | None = None) -> Node:
    """Return the join, and each left row for the time that it has no match, with None for the right one.

    >>> from streamdsl.plan.explain import explain
    >>> from streamdsl.plan.node import Source
    >>> print(explain(left_join(Source("l"), Source("r"), Matching()), "reference"))
    union_1  (_0, _1)  <denotation>
    ├─ join_1 cross join  (_0, _1)  <denotation>
    │  ├─ source:l  <denotation>
    │  └─ source:r  <denotation>
    └─ select_1 (e, None)  (_0, _1)  <denotation>
       └─ anti_join_1  <denotation>
          ├─ source:l  <denotation>
          └─ source:r  <denotation>
    """
    return Union(_left_join(left, right, matching, projection))


def full_join(left: Node, right: Node, matching: Matching, projection: Expr | None = None) -> Node:
    """Return the left join, and each right row for the time that it has no match, with None for the left one."""
    alone = AntiJoin(right, left, _swapped(matching))
    return Union((*_left_join(left, right, matching, projection), Select(alone, without_row(projection or PAIR, 0))))


def _left_join(left: Node, right: Node, matching: Matching, projection: Expr | None) -> tuple[Node, Node]:
    alone = AntiJoin(left, right, matching)
    return Join(left, right, matching, projection), Select(alone, without_row(projection or PAIR, 1))


def _swapped(matching: Matching) -> Matching:
    where = None if matching.where is None else swapped(matching.where)
    return Matching(matching.right_key, matching.left_key, where)


def band_join(
    left: Node, right: Node, matching: Matching, projection: Expr | None, before: int, after: int, time: BandTime = "max"
) -> Node:
    """Return the pairs with the right LE in `[left LE - before, left LE + after]`; each pair is a point in time.

    Each side's lifetime becomes the period in which its partners may start, moved so that lifetimes overlap exactly for pairs
    within the band, and first at the time of the result. With `"both"` a pair lives from the earlier LE to the later one.

    >>> from streamdsl.plan.explain import explain
    >>> from streamdsl.plan.node import Source
    >>> print(explain(band_join(Source("l"), Source("r"), Matching(), None, 5, 3), "reference"))
    alter_lifetime_3 [LE, LE + 1) [points]  (_0, _1)  <denotation>
    └─ join_1 cross join  (_0, _1)  <denotation>
       ├─ alter_lifetime_1 [LE, LE + 4) [duration 4]  <denotation>
       │  └─ source:l  <denotation>
       └─ alter_lifetime_2 [LE, LE + 6) [duration 6]  <denotation>
          └─ source:r  <denotation>
    """
    if before + after < 0:
        raise QueryError(f"the band from {-before} to {after} is empty", hint="before and after are at least 0 in sum")
    if time not in _BAND_TIMES:
        raise QueryError(f"time is one of {', '.join(_BAND_TIMES)}, not {time!r}")
    if time in ("min", "both"):
        return _from_the_earlier(left, right, matching, projection, before, after, time)
    return lasting(Join(*_sides(left, right, before, after, time), matching, projection), 0, 1)


def _sides(left: Node, right: Node, before: int, after: int, time: BandTime) -> tuple[Node, Node]:
    """Return both sides with lifetimes that overlap exactly for pairs within the band, and first at the time of the result."""
    if time == "left" or (time == "max" and after < 0):
        return lasting(left, 0, 1), lasting(right, -after, before + after + 1)
    if time == "right" or before < 0:
        return lasting(left, -before, before + after + 1), lasting(right, 0, 1)
    return lasting(left, 0, after + 1), lasting(right, 0, before + 1)


def _from_the_earlier(
    left: Node, right: Node, matching: Matching, projection: Expr | None, before: int, after: int, time: BandTime
) -> Node:
    """Return the band in two parts: pairs with left LE <= right LE, timed by the left LE, and the others, by the right LE."""
    bands: list[tuple[int, int, BandTime]] = []
    if after >= 0:
        bands.append((min(before, 0), after, "left"))
    if before > 0:
        bands.append((before, min(after, -1), "right"))
    made = _until_the_later if time == "both" else band_join
    parts = tuple(made(left, right, matching, projection, *band) for band in bands)
    return Union(parts) if len(parts) > 1 else parts[0]


def _until_the_later(
    left: Node, right: Node, matching: Matching, projection: Expr | None, before: int, after: int, time: BandTime
) -> Node:
    """Return pairs that live from the LE of the side `time`, the earlier, to the other LE.

    A join's lifetimes cannot express that end, so each pair carries the distance of both LEs in an extra field, from which its
    duration is computed.
    """
    first, other = Life("le", 0), Binary("+", Life("le", 1), Constant(after))
    if time == "right":
        first, other = Life("le", 1), Binary("+", Life("le", 0), Constant(before))
    payload = projection or PAIR
    values = payload.values if isinstance(payload, Make) else (payload,)
    fields = tuple(Field(f"_{n}") for n in range(len(values) + 1))
    carried = Make(Schema.tuple(len(fields)), (*values, Binary("-", other, first)))
    pairs = Join(*_sides(left, right, before, after, time), matching, carried)
    lasting_until = alter_lifetime(pairs, None, Binary("+", fields[-1], Constant(1)))
    return Select(lasting_until, Make(payload.schema, fields[:-1]) if isinstance(payload, Make) else fields[0])


def fill(node: Node, value: Expr, cells: Hopping, start: int | None, end: int) -> Node:
    """Return the rows, and in each cell of the grid a row with `value` for the time in which no row lives.

    A cell is filled when a CTI reaches it, not when a later row arrives: until then rows of the cell may still arrive.

    >>> from streamdsl.plan.explain import explain
    >>> from streamdsl.plan.node import Source
    >>> print(explain(fill(Source("s"), Constant(0), Hopping(10, 10), 0, 60), "reference"))
    union_1  <denotation>
    ├─ source:s  <denotation>
    └─ anti_join_1  (value)  <denotation>
       ├─ select_1 0  (value)  <denotation>
       │  └─ chop_1 at tumbling(10)  (value)  <denotation>
       │     └─ calendar_1 from 0 to 60  (value)  <denotation>
       │        └─ source:s  <denotation>
       └─ source:s  <denotation>
    """
    if start is not None and node.level >= 0:
        raise QueryError("the calendar of a group begins with the group's first row", hint="leave start out, or fill the whole")
    schema, given = node.schema, schema_of(value, ())
    if schema is not None and given is not None and schema.names != given.names:
        raise QueryError(
            f"the value has the fields {', '.join(given.names)}, the rows have {', '.join(schema.names)}",
            hint="give a value like the rows' payloads",
        )
    gaps = AntiJoin(Select(Chop(Calendar(node, start, end), cells), value), node, Matching())
    return Union((node, gaps))


def lasting(node: Node, later: int, duration: int) -> Node:
    """Return the rows shifted by `later` ticks, each with the same duration.

    >>> from streamdsl.plan.explain import explain
    >>> from streamdsl.plan.node import Source
    >>> print(explain(lasting(Source("s"), 10, 5), "reference"))
    alter_lifetime_1 [LE, LE + 5) [duration 5]  <denotation>
    └─ shift_1 [LE + 10, RE + 10)  <denotation>
       └─ source:s  <denotation>
    """
    if abs(later) >= INFINITY:
        raise QueryError(
            "a band without a bound puts each result at a time for which it never becomes final",
            hint='use time="max", or bound the band',
        )
    return alter_duration(shift(node, later) if later else node, min(duration, INFINITY))


def scan_in_order(input: Node, module: Sieve[Any], order: Expr) -> Node:
    """Return the rows that a module lets pass, which sees them in order of (LE, order, payload, RE).

    >>> from streamdsl.plan.explain import explain
    >>> from streamdsl.plan.node import Source
    >>> from streamdsl.udm.throttle import OnlyFirst
    >>> print(explain(scan_in_order(Source("sent"), OnlyFirst(), Field("number")), "reference"))
    select_2 e.row  <denotation>
    └─ scan_1 drop_duplicates()  (order, row)  <denotation>
       └─ select_1 {order: e.number, row: e}  (order, row)  <denotation>
          └─ source:sent  <denotation>
    """
    pairs = Select(input, Make(Schema.record(("order", "row")), (order, Whole())))
    row, schema = Field("row"), input.schema
    back: Expr = row
    if schema is not None and schema.shape in (Shape.RECORD, Shape.CLASS):
        back = Make(schema, tuple(Attribute(row, name) for name in schema.names))
    return Select(Scan(pairs, module), back)
