"""Frames of physical events: retractions are folded into the insertion of their id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.functions import expr

from streamdsl.spark.sql_text import not_pushed_down, raise_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PHYSICAL: Final = ("kind", "id", "re_new")
"""The columns that physical events have besides those of a history."""

_INSERTED: Final = "FILTER (WHERE kind = 'insert')"
_RETRACTED: Final = "FILTER (WHERE kind = 'retract')"
_AGGREGATES: Final = (
    f"count(1) {_INSERTED} as n",
    f"first(re) {_INSERTED} as re",
    f"first(p) {_INSERTED} as p",
    f"min(re_new) {_RETRACTED} as least",
    f"collect_list(re) {_RETRACTED} as olds",
    f"collect_list(re_new) {_RETRACTED} as news",
    f"coalesce(sum(cast(re_new as decimal(20,0)) - cast(re as decimal(20,0))) {_RETRACTED}, 0) as moved",
)


def kind_and_id(kind: str, id: str) -> dict[str, str]:
    """Return the SQL of the columns `kind` and `id` of physical events; an unknown kind or a null id fails the task."""
    unknown = raise_error("EventError", "the kind of a physical event is insert, retract or cti")
    nameless = raise_error("EventError", "the id of an insertion or a retraction is null")
    return {
        "kind": f"if(coalesce({kind} IN ('insert', 'retract', 'cti'), false), {kind}, {unknown})",
        "id": f"if({id} IS NULL AND {kind} <> 'cti', {nameless}, {id})",
    }


def fold_retractions(events: DataFrame) -> DataFrame:
    """Return the history of a frame with the columns `kind`, `id`, `le`, `re`, `re_new` (ticks) and `p`.

    A later use of an id has a larger LE, so an id and an LE identify a row. As a frame has no order, retractions match their
    insertion if in some order they form a chain that starts at its RE. Otherwise the task fails with an `EventError`, as it does
    for a row with no insertion or several, and for an id that is reused before its earlier event has ended.
    """
    rows = events.where("kind <> 'cti'").repartition("id").groupBy("id", "le").agg(*map(expr, _AGGREGATES))
    later = "lead(if(n > 0, le, NULL)) OVER (PARTITION BY id ORDER BY le) as later"
    ended = rows.selectExpr("*", "cast(re as decimal(20,0)) + moved as final", later)
    once = raise_error("EventError", "an id has no insertion with this le, or several, in a frame of physical events")
    matched = raise_error("EventError", "a retraction does not match its insertion: its re is not the event's, or re_new < le")
    known = raise_error("EventError", "an id is used again before the end of the event that it named")
    chained = "array_sort(concat(array(re), news)) = array_sort(concat(olds, array(cast(final as bigint))))"
    checked = (
        f"CASE WHEN n <> 1 THEN {once} WHEN NOT coalesce(least >= le, true) OR NOT {chained} THEN {matched} "
        f"WHEN le < final AND later <= final THEN {known} ELSE le END"
    )
    return ended.selectExpr(f"{not_pushed_down(checked)} as le", "cast(final as bigint) as re", "p")
