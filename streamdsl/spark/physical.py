"""Frames of physical events: the insertion of each id, folded with its retractions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.functions import expr

from streamdsl.spark.sql import raising

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PHYSICAL: Final = ("kind", "id", "re_new")
"""The columns that tell physical events from rows of a history."""

_INSERTED: Final = "FILTER (WHERE kind = 'insert')"
_RETRACTED: Final = "FILTER (WHERE kind = 'retract')"
_FACTS: Final = (
    f"count(1) {_INSERTED} as n",
    f"first(le) {_INSERTED} as le",
    f"first(re) {_INSERTED} as re",
    f"first(p) {_INSERTED} as p",
    "min(le) as first_le",
    "max(le) as last_le",
    f"min(re_new) {_RETRACTED} as least",
    f"collect_list(re) {_RETRACTED} as olds",
    f"collect_list(re_new) {_RETRACTED} as news",
    f"coalesce(sum(cast(re_new as decimal(20,0)) - cast(re as decimal(20,0))) {_RETRACTED}, 0) as moved",
)


def folded(events: DataFrame) -> DataFrame:
    """Return the history of a frame with the columns `kind`, `id`, `le`, `re`, `re_new` (ticks) and `p`.

    A frame has no order, so a retraction matches if some order of those of its id leads from the insertion's end, end by end.
    What matches nothing fails the task with an `EventError`, like an id with no insertion, or with several.
    """
    unknown = raising("EventError", "the kind of a physical event is insert, retract or cti")
    changes = f"CASE kind WHEN 'cti' THEN false WHEN 'insert' THEN true WHEN 'retract' THEN true ELSE {unknown} END"
    facts = events.where(changes).groupBy("id").agg(*map(expr, _FACTS))
    ended = facts.selectExpr("*", "cast(re as decimal(20,0)) + moved as final")
    once = raising("EventError", "an id has no insertion, or several, in a frame of physical events")
    matched = raising("EventError", "a retraction does not match its insertion: its le or re is not the event's, or re_new < le")
    alike = "first_le <=> le AND last_le <=> le AND coalesce(least >= le, true)"
    chained = "array_sort(concat(array(re), news)) = array_sort(concat(olds, array(cast(final as bigint))))"
    end = f"if({alike} AND {chained}, cast(final as bigint), {matched})"
    return ended.selectExpr(f"if(n = 1, le, {once}) as le", f"{end} as re", "p")
