"""Metrics of running streams, from what Spark reports of each micro-batch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from streamdsl.spark.sql_text import quote
from streamdsl.spark.time_columns import end_or_infinity, to_ticks
from streamdsl.temporal import MIN_TIME, Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress

METRICS: Final = "streamdsl"
"""The name of our metrics among the observed metrics of Spark's listeners."""
_OBSERVED: Final = (
    "count_if(kind IN ('insert', 'retract')) as rows_out",
    "count_if(kind = 'rejected') as rows_rejected",
)
_INPUTS: Final = f"{METRICS}/"
"""With this the names of metrics begin that a stage has of its inputs."""
_KEPT: Final = 256
_driver_figures: OrderedDict[tuple[str, int], Mapping[str, Any]] = OrderedDict()
"""Metrics of micro-batches whose engine runs in the driver, by stream and number; the oldest are dropped."""


def with_metrics(events: DataFrame, unit: Unit | None) -> DataFrame:
    """Return physical events with observed metrics: the numbers of rows, and the CTI of each shard."""
    from pyspark.sql.functions import expr

    ticks = end_or_infinity(to_ticks("le", "le", events.schema["le"].dataType.simpleString(), unit or "tick"))
    ctis = f"collect_set(if(kind = 'cti', struct(shard, {ticks} as le), null)) as ctis"
    return events.observe(METRICS, *map(expr, (*_OBSERVED, ctis)))


def with_input_ctis(messages: DataFrame, number: int, names: Iterable[str]) -> DataFrame:
    """Return the messages to the shards of a stage with the CTIs of these sources as observed metrics.

    A policy that waits for a number of rows is not known here, as its CTI is not.
    """
    from pyspark.sql.functions import expr

    known = ", ".join(map(quote, names))
    told = f"cti IS NOT NULL AND seen IS NULL AND origin IS NULL AND source IN ({known})"
    ctis = f"collect_set(if({told}, struct(source, cti), null)) as ctis"
    return messages.observe(f"{_INPUTS}{number}", expr(f"array({known}) as sources"), expr(ctis))


def record_figures(stream: str | None, batch: int, figures: Mapping[str, Any]) -> None:
    """Record the metrics of a micro-batch for `Meter`."""
    _driver_figures[str(stream), batch] = figures
    while len(_driver_figures) > _KEPT:
        _driver_figures.popitem(last=False)


class Meter:
    """Turns a `StreamingQueryProgress` into figures: one for each stream, given its progress in order.

    A figure is a dict: `batch`, `rows_in`, `rows_out` (insertions and retractions), `rows_rejected`, `cti` (in ticks; the least
    of the shards that have sent one, None before), `input_ctis` (of each streaming source; the least of them holds the output
    back), `state_bytes` (in shards: what the state store has on disk), `seconds`.
    """

    def __init__(self) -> None:
        self._ctis: dict[int, int] = {}
        self._inputs: dict[str, int | None] = {}

    def __call__(self, progress: StreamingQueryProgress) -> dict[str, Any]:
        """Return the figures of a micro-batch."""
        known = {"batch": progress.batchId, "rows_in": progress.numInputRows, "seconds": progress.batchDuration / 1000}
        own = _driver_figures.get((str(progress.id), progress.batchId))
        return {**known, **(self._observed(progress) if own is None else own)}

    def _observed(self, progress: StreamingQueryProgress) -> dict[str, Any]:
        row = progress.observedMetrics.get(METRICS)
        found = {} if row is None else _plain(row.asDict(recursive=True))
        for cti in found.get("ctis") or ():
            self._ctis[cti["shard"]] = max(cti["le"], self._ctis.get(cti["shard"], MIN_TIME))
        for name, row in progress.observedMetrics.items():
            if name.startswith(_INPUTS):
                self._take_inputs(_plain(row.asDict(recursive=True)))
        sizes = [operator.customMetrics.get("rocksdbSstFileSize", 0) for operator in progress.stateOperators]
        cti = min(self._ctis.values(), default=None)
        rows = {name: found.get(name, 0) for name in ("rows_out", "rows_rejected")}
        return {**rows, "cti": cti, "input_ctis": dict(self._inputs), "state_bytes": sum(sizes) if sizes else None}

    def _take_inputs(self, found: Mapping[str, Any]) -> None:
        for name in found["sources"]:
            self._inputs.setdefault(name, None)
        for each in found["ctis"]:
            known = self._inputs[each["source"]]
            self._inputs[each["source"]] = each["cti"] if known is None else max(each["cti"], known)


def _plain(value: Any) -> Any:
    """Return an observed value as plain data; Spark Connect reports rows as values beside a schema.

    >>> fields = [{"name": "shard"}, {"name": "le"}]
    >>> _plain({"values": [[{"values": [0, 7], "schema": {"fields": fields}}]], "schema": {"fields": [{"name": "ctis"}]}})
    {'ctis': [{'shard': 0, 'le': 7}]}
    """
    if isinstance(value, (list, tuple)):
        return list(map(_plain, value))
    if not isinstance(value, dict) or value.keys() != {"values", "schema"}:
        return value
    return {field["name"]: _plain(each) for field, each in zip(value["schema"]["fields"], value["values"], strict=True)}
