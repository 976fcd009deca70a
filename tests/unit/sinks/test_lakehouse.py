"""Tables of Delta and Iceberg: of one stream, written once by whoever comes first, beside others who change the table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl.errors import QueryError, SinkError
from streamdsl.sinks import DeltaEvents, IcebergEvents
from streamdsl.sinks.lakehouse import LakehouseEvents

Open = Callable[[], LakehouseEvents]


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens one table, in a format."""
    if request.param == "delta":
        pytest.importorskip("deltalake")
        return lambda: DeltaEvents(tmp_path / "a table")
    sql = pytest.importorskip("pyiceberg.catalog.sql")

    def catalog() -> Any:
        return sql.SqlCatalog("here", uri=f"sqlite:///{tmp_path}/catalog", warehouse=f"file://{tmp_path}")

    catalog().create_namespace("db")
    return lambda: IcebergEvents(catalog, "db.t")


def events(*rows: tuple[str, int], **fields: Any) -> pa.Table:
    """Return insertions."""
    inserted = [sd.Insert(id, le, le + 5, {"v": le, **fields}) for id, le in rows]
    return sd.source("s", unit="tick").open().feed(inserted).to_arrow()


def rows_of(sink: LakehouseEvents) -> list[tuple[Any, ...]]:
    """Return what a table holds, after a look at it as it is now."""
    table = sink._open()
    held = table.to_pyarrow_table() if isinstance(sink, DeltaEvents) else table.scan().to_arrow()
    return sorted((row["id"], row["le"], row.get("w")) for row in held.to_pylist())


def maintain(sink: LakehouseEvents) -> None:
    """Commit something that is no micro-batch, as others do who take care of a table."""
    table = sink._open()
    if isinstance(sink, DeltaEvents):
        table.optimize.compact()
    else:
        with table.transaction() as change:
            change.append(table.scan(limit=0).to_arrow())


def test_a_micro_batch_that_comes_again_changes_nothing(sink: Open) -> None:
    for _ in range(2):
        sink().write(events(("a", 1)), 0, "s")
    sink().write(events(), 1, "s")
    sink().write(events(("b", 2), w="x"), 2, "s")
    assert [sink().has(batch, "s") for batch in range(4)] == [True, True, True, False]
    assert rows_of(sink()) == [("a", 1, None), ("b", 2, "x")]


def test_what_is_written_and_not_committed_is_not_there(sink: Open) -> None:
    sink().write(events(("a", 1)), 0, "s")
    cut_off, more = sink(), events(("b", 2), w="x")
    assert not cut_off.has(1, "s")
    (told,) = cut_off.files(more.schema, "s").write(more.to_batches())
    assert told.num_rows == 1
    assert rows_of(sink()) == [("a", 1, None)]
    sink().write(more, 1, "s")
    with pytest.raises(SinkError, match=r"Concurrent transaction failed|another process has written micro-batch 1 of"):
        cut_off.commit(told.to_pylist(), 1)
    assert rows_of(sink()) == [("a", 1, None), ("b", 2, "x")]


def test_what_others_commit_meanwhile_is_no_matter(sink: Open) -> None:
    sink().write(events(("a", 1)), 0, "s")
    sink().write(events(("b", 2)), 1, "s")
    late, more = sink(), events(("c", 3))
    assert not late.has(2, "s")
    files = late.files(more.schema, "s")
    maintain(sink())
    late.commit([row for each in files.write(more.to_batches()) for row in each.to_pylist()], 2)
    assert sink().has(2, "s")
    assert [id for id, *_ in rows_of(sink())] == ["a", "b", "c"]


def test_the_number_outlives_the_log(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    sink = DeltaEvents(tmp_path / "t")
    for batch in range(3):
        sink.write(events(("a", batch)), batch, "s")
    deltalake.DeltaTable(sink.path).create_checkpoint()
    for file in (tmp_path / "t" / "_delta_log").glob("*[0-2].json"):
        file.unlink()
    assert DeltaEvents(tmp_path / "t").has(2, "s")


def test_a_table_of_others_is_refused(sink: Open, tmp_path: Path) -> None:
    sink().write(events(("a", 1)), 0, "s")
    with pytest.raises(SinkError, match="belongs to another stream"):
        sink().write(events(("a", 1)), 1, "t")
    with pytest.raises(SinkError, match="1 to 2 are missing"):
        sink().write(events(("a", 1)), 3, "s")
    one = sink()
    other = IcebergEvents(one.catalog, "db.other") if isinstance(one, IcebergEvents) else DeltaEvents(tmp_path / "other")
    other._create(pa.schema({"v": pa.int64()}), {})
    with pytest.raises(SinkError, match="exists, and no stream has written it"):
        other.write(events(("a", 1)), 0, "s")


def test_a_table_that_is_lost_is_missed(sink: Open) -> None:
    with pytest.raises(SinkError, match="has no micro-batch, and micro-batch 4 is to be written"):
        sink().write(events(("a", 1)), 4, "s")


def test_values_that_do_not_fit_are_refused(sink: Open) -> None:
    with pytest.raises(SinkError, match=r"(?s)duration.*\nHint: "):
        sink().write(events(("a", 1), w=timedelta(1)), 0)
    sink().write(events(("a", 1), w="x"), 0)
    with pytest.raises(SinkError, match=r"the column 'w' of the table .* is string, and the stream sends int64"):
        sink().write(events(("b", 1), w=1), 1)
    with pytest.raises(SinkError, match="it lacks w"):
        sink().write(events(("b", 1)), 1)
    assert rows_of(sink()) == [("a", 1, "x")]


@pytest.mark.parametrize(("package", "extra"), [("deltalake", "delta"), ("pyiceberg", "iceberg")])
def test_the_package_is_named_with_its_extra(package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(QueryError, match=rf"need {package}, which is not installed\nHint: pip install 'streamdsl\[{extra}\]'"):
        DeltaEvents("t") if extra == "delta" else IcebergEvents(lambda: None, "t")
