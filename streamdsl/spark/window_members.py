"""The members of windows as rows: a copy of each row for each window that it belongs to, with the window's bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pyspark.sql.functions import expr

from streamdsl.spark import grid_sql
from streamdsl.spark.flow import window_clause
from streamdsl.spark.sql_text import NotNative, integer, plus_time
from streamdsl.temporal import INFINITY, Unit
from streamdsl.windows import Count, Hopping, Session, Snapshot, Windows

Division: TypeAlias = Callable[[Any], Any]
"""Divides rows among windows: a frame in, a frame out that has the columns of the windows, too."""


def members(windows: Windows, keys: Sequence[str], until: int, unit: Unit | None = None) -> Division:
    """Return the division of rows, with all their columns, among windows with RE <= `until`, which are `wle` and `wre`.

    Raises `NotNative` for windows that only Python finds.
    """
    if type(windows) not in _MEMBERS:
        raise NotNative(f"which rows are in windows of the kind {windows.kind} is found in Python")
    return _MEMBERS[type(windows)](windows, keys, until, unit)


def in_grid(windows: Hopping, keys: Sequence[str], until: int, unit: Unit | None, points: bool = False) -> Division:
    """Return the division of rows among the windows of a grid; `points`: all rows are points."""
    bounds = grid_sql.bounds(windows, until, points, unit)
    start, end = grid_sql.start(windows, "w"), grid_sql.end(windows, "wle")
    number = "lo as w" if points and windows.size <= windows.hop else "explode(sequence(lo, hi)) as w"

    def made(df: Any) -> Any:
        rows = df.selectExpr("*", *bounds).where("lo <= hi").selectExpr("*", number)
        return rows.selectExpr("*", f"{start} as wle").selectExpr("*", f"{end} as wre")

    return made


def in_sessions(windows: Session, keys: Sequence[str]) -> Division:
    """Return the division of rows among sessions, which are numbers `session`; a row reaches as far as `reach`."""
    if windows.max_duration is not None:
        raise NotNative("where a session with a longest duration is cut is found in Python")
    reach = f"{plus_time('re', windows.gap)} as reach"
    before = window_clause(keys, "le", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    # A row opens a session if it starts at or after the reach of all before it. Rows with equal LEs come in no defined order:
    # only one of them opens a session, and RANGE gives all of them its number.
    opens = f"if(le < max(reach) {before}, 0L, 1L) as opens"
    number = f"sum(opens) {window_clause(keys, 'le', ' RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW')} as session"
    return lambda df: df.selectExpr("*", reach).selectExpr("*", opens).selectExpr("*", number)


def _members_of_sessions(windows: Session, keys: Sequence[str], until: int, unit: Unit | None) -> Division:
    numbered, whole = in_sessions(windows, keys), window_clause([*keys, "session"])
    bounds = f"min(le) {whole} as wle", f"max(reach) {whole} as wre"
    return lambda df: numbered(df).selectExpr("*", *bounds).where(f"wre <= {integer(until)}")


def snapshots(df: Any, keys: Sequence[str]) -> Any:
    """Return the snapshots of rows as `wle`, `wre`, and their numbers `r`; the last endpoint begins one without an end."""
    times = df.selectExpr(*keys, "explode(array(le, re)) as t").distinct()
    return _numbered(times, keys, f"lead(t) {window_clause(keys, 't')}")


def with_rank(rows: Any, windows: Any, keys: Sequence[str], time: str, name: str) -> Any:
    """Return rows with the number of the window that begins at one of their times."""
    known = windows.selectExpr(f"wle as t_{name}", f"r as {name}", *(f"{key} as {name}_{key}" for key in keys))
    return _joined(rows, known, [f"{time} = t_{name}", *(f"{key} <=> {name}_{key}" for key in keys)])


def with_bounds(rows: Any, windows: Any, keys: Sequence[str]) -> Any:
    """Return rows with the bounds of the window of their number `r`."""
    named = windows.selectExpr("wle", "wre", "r as s", *(f"{key} as s_{key}" for key in keys))
    return _joined(rows, named, ["r = s", *(f"{key} <=> s_{key}" for key in keys)])


def in_snapshots(rows: Any, windows: Any, keys: Sequence[str]) -> Any:
    """Return a copy of each row for each snapshot from the one that begins at its LE up to the one that begins at its RE."""
    ranked = with_rank(with_rank(rows, windows, keys, "le", "r1"), windows, keys, "re", "r2")
    return ranked.selectExpr("*", "explode(sequence(r1, r2 - 1)) as r")


def _members_of_snapshots(windows: Snapshot, keys: Sequence[str], until: int, unit: Unit | None) -> Division:
    def made(df: Any) -> Any:
        known = snapshots(df, keys)
        return with_bounds(in_snapshots(df, known, keys), known, keys).where(f"wre <= {integer(until)}")

    return made


def _members_of_counts(windows: Count, keys: Sequence[str], until: int, unit: Unit | None) -> Division:
    time = "le" if windows.by == "start" else "re"
    last = f"lead(t, {windows.n - 1}) {window_clause(keys, 't')}"
    number = f"explode(sequence(greatest(r1 - {windows.n - 1}, 1), r1)) as r"

    def made(df: Any) -> Any:
        counted = df.where(f"{time} < {integer(INFINITY)}")
        known = _numbered(counted.selectExpr(*keys, f"{time} as t").distinct(), keys, last)
        rows = with_rank(counted, known, keys, time, "r1").selectExpr("*", number)
        complete = known.where("wre IS NOT NULL").selectExpr(*keys, "r", "wle", f"{plus_time('wre', 1)} as wre")
        return with_bounds(rows, complete, keys).where(f"wre <= {integer(until)}")

    return made


def _numbered(times: Any, keys: Sequence[str], end: str) -> Any:
    """Return the windows that begin at these times `t` and end at `end`, numbered from 1."""
    clause = window_clause(keys, "t")
    return times.selectExpr(*keys, "t as wle", f"{end} as wre", f"row_number() {clause} as r")


def _joined(left: Any, right: Any, conditions: Sequence[str]) -> Any:
    return left.join(right, expr(" AND ".join(conditions)))


_MEMBERS: Final[Mapping[type[Windows], Callable[[Any, Sequence[str], int, Unit | None], Division]]] = {
    Hopping: in_grid,
    Session: _members_of_sessions,
    Snapshot: _members_of_snapshots,
    Count: _members_of_counts,
}
"""The members of each kind of windows; other kinds divide their rows in Python."""
