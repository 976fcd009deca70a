"""The names of `import streamdsl as sd`: those of the contract, by its sections, and one that is beside it."""

from __future__ import annotations

import inspect

import streamdsl as sd
import streamdsl.functions

TIME = "CHT CHTRow Cti INFINITY Insert MIN_TIME Record Retract correct edge_end edge_start errors interval point sync_time"
SOURCES = "Progress from_arrow from_csv from_events from_jsonl from_pandas from_parquet from_polars from_rows source"
QUERIES = (
    "Agg Clip GroupedStream GroupedWindowedStream Output Stream WindowedStream col is_none lit not_ udf when "
    "avg collect count count_distinct first last max median min quantile stddev sum time_weighted_avg variance"
)
MODULES = (
    "IncrementalUDA IncrementalUDO IntervalEvent TimeSensitiveIncrementalUDA TimeSensitiveIncrementalUDO "
    "TimeSensitiveUDA TimeSensitiveUDO UDA UDO WindowDescriptor testing uda udm udo"
)
RUNNING = "Event Rejected"
PAPERS = "astral cql progress secret"
BESIDE = "sql"
"""Not in the contract: what users of other engines type first (docs/decisions/17-the-door.md)."""


def test_the_door_has_the_names_of_the_contract_and_no_others() -> None:
    names = " ".join((TIME, SOURCES, QUERIES, MODULES, RUNNING, PAPERS, BESIDE)).split()
    assert sorted(sd.__all__) == sorted(names)
    assert len(set(names)) == len(names)


def test_functions_of_expressions_are_all_in_one_place() -> None:
    at_the_top = [name for name in streamdsl.functions.__all__ if name in sd.__all__]
    assert at_the_top == ["col", "is_none", "lit", "not_", "udf", "when"]
    assert [name for name in at_the_top if getattr(sd, name) is not getattr(sd.functions, name)] == []
    assert [name for name in streamdsl.functions.__all__ if not inspect.getdoc(getattr(sd.functions, name))] == []
