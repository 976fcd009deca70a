"""What is so of every format: rows in pieces, paths, times, what is refused and how it is named, histories out and in."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl.errors import EventError, QueryError, SchemaError
from streamdsl.expr.schema import Schema
from streamdsl.io import csv_files, files
from streamdsl.io.binding import Bound
from streamdsl.io.data_frames import events_to_pandas
from streamdsl.io.formats import BY_SUFFIX, FORMATS
from streamdsl.sources import from_files
from streamdsl.temporal import CHT, INFINITY, Cti, Event, Insert, Retract
from tests.formats import entries
from tests.formats.entry import FileFormat
from tests.unit.io.written import DAY

EACH = pytest.mark.parametrize("entry", entries().values(), ids=entries())
ROWS: list[dict[str, Any]] = [
    {"le": 1, "re": 5, "v": "a", "n": 2**53 + 1},
    {"le": 2, "re": None, "v": None, "n": 7},
    {"le": 2, "re": 4, "v": 'it\'s, "c"', "n": None},
]
EVENTS: list[Event[Any]] = [
    Insert(n, row["le"], row["re"] or INFINITY, {"v": row["v"], "n": row["n"]}) for n, row in enumerate(ROWS)
]


def written(path: Path, entry: FileFormat, rows: list[dict[str, Any]] | pa.Table = ROWS, style: int = 0) -> Path:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    path.write_bytes(entry.write(table, style))
    return path


def suffix(entry: FileFormat) -> str:
    return FORMATS[entry.name].suffixes[0]


def bound(stream: sd.Stream[Any]) -> Bound:
    (found,) = stream._bindings.values()
    return found


def test_each_format_has_an_entry_and_each_suffix_a_format() -> None:
    assert sorted(entries()) == sorted(FORMATS)
    assert sorted(BY_SUFFIX) == sorted(suffix for each in FORMATS.values() for suffix in each.suffixes)


@EACH
@pytest.mark.parametrize("style", [0, 1])
@pytest.mark.parametrize("rows", [2, 65_536])
def test_rows_are_read_in_pieces(
    tmp_path: Path, entry: FileFormat, style: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE_ROWS", rows)
    monkeypatch.setattr(csv_files, "PIECE_ROWS", rows)
    path = written(tmp_path / f"in{suffix(entry)}", entry, style=style)
    for read in (from_files, entry.source):
        found = bound(read(path, end="re"))
        assert list(found.events()) == list(found.events()) == EVENTS
        assert (found.unit, found.schema) == ("tick", Schema.record(["v", "n"]))
        assert found.size_hint in (None, len(ROWS))
        sizes = [len(piece) for piece in found.pieces()]
        assert max(sizes) <= rows
        assert style or sizes == ([2, 1] if rows == 2 else [3])


@EACH
def test_the_needed_columns_are_read(tmp_path: Path, entry: FileFormat) -> None:
    path = written(tmp_path / f"in{suffix(entry)}", entry)
    given = FORMATS[entry.name].open([str(path)], Schema.record(["n"]), "le")
    for columns, file, row in given.pieces(["le", "n"]):
        assert {"le", "n"} <= set(columns.names)
        assert len(columns.names) == 2 or not given.in_columns
        assert (file, row) == (str(path), 0)
    assert from_files(path, end="re").select(lambda e: e.n).run().cht() == CHT.from_rows(
        [(row["le"], row["re"] or INFINITY, row["n"]) for row in ROWS]
    )


@EACH
def test_a_name_with_a_dot_is_no_nested_field(tmp_path: Path, entry: FileFormat) -> None:
    path = written(tmp_path / f"in{suffix(entry)}", entry, [{"le": 1, "a.b": 7, "a": 8}])
    assert list(bound(from_files(path)).events()) == [Insert(0, 1, 2, {"a.b": 7, "a": 8})]


@EACH
def test_dates_are_read_in_utc(tmp_path: Path, entry: FileFormat) -> None:
    rows = [{"le": datetime(2013, 2, 8, 0, 0, 1, tzinfo=UTC), "re": None, "v": 1}]
    table = pa.Table.from_pylist(
        rows, pa.schema({"le": pa.timestamp("us", "UTC"), "re": pa.timestamp("us", "UTC"), "v": pa.int64()})
    )
    found = bound(from_files(written(tmp_path / f"in{suffix(entry)}", entry, table), end="re"))
    assert (found.unit, list(found.events())) == ("us", [Insert(0, DAY + 10**6, INFINITY, {"v": 1})])


@EACH
def test_folders_and_lists_of_files_are_read_in_order(tmp_path: Path, entry: FileFormat) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "_SUCCESS").touch()
    one = written(tmp_path / f"b{suffix(entry)}", entry, [{"le": 1, "v": 1}])
    two = written(tmp_path / "more" / f"a{suffix(entry)}", entry, [{"le": 5, "v": 2}])
    for read in (from_files, entry.source):
        ways: list[tuple[Any, list[int]]] = [(tmp_path, [1, 5]), ([two, str(one)], [5, 1])]
        for given, starts in ways:
            events = list(bound(read(given)).events())
            assert [(event.id, event.le) for event in events if isinstance(event, Insert)] == list(enumerate(starts))


@EACH
def test_each_suffix_tells_the_format(tmp_path: Path, entry: FileFormat) -> None:
    for number, each in enumerate(FORMATS[entry.name].suffixes):
        written(tmp_path / f"{number}{each}", entry, [{"le": number, "v": 1}])
        assert bound(from_files(tmp_path / f"{number}{each}")).unit == "tick"
    assert len(from_files(tmp_path).run()) == len(FORMATS[entry.name].suffixes)


@EACH
def test_no_file_is_refused(tmp_path: Path, entry: FileFormat) -> None:
    for read in (from_files, entry.source):
        with pytest.raises(QueryError, match=rf"no file to read[\s\S]*\*{suffix(entry)}"):
            read(tmp_path)
        with pytest.raises(FileNotFoundError):
            read(tmp_path / f"missing{suffix(entry)}")


def test_files_that_are_read_together_are_of_one_known_format(tmp_path: Path) -> None:
    for name in ("a.csv", "b.jsonl", "c.txt"):
        (tmp_path / name).write_text("")
    with pytest.raises(QueryError, match=r"of one format, not '\.csv', '\.jsonl'"):
        from_files(tmp_path)
    with pytest.raises(QueryError, match=r"'\.txt' are of no format that is known\nHint: files end in .*\.csv"):
        from_files(tmp_path / "c.txt")


@EACH
def test_a_later_file_with_other_columns_is_refused_by_name(tmp_path: Path, entry: FileFormat) -> None:
    written(tmp_path / f"a{suffix(entry)}", entry, [{"le": 1, "v": 1}])
    written(tmp_path / f"b{suffix(entry)}", entry, [{"le": 1, "w": 1}])
    with pytest.raises(SchemaError, match=rf"b\{suffix(entry)}.*'v'.*le"):
        from_files(tmp_path).run()


@EACH
def test_a_row_without_a_start_is_refused_by_file_and_row(tmp_path: Path, entry: FileFormat) -> None:
    rows = [{"le": 1, "v": 1}, {"le": 2, "v": 1}, {"le": None, "v": 1}]
    with pytest.raises(EventError, match=rf"row 2 of .*in\{suffix(entry)}, column 'le'"):
        from_files(written(tmp_path / f"in{suffix(entry)}", entry, rows)).run()


BROKEN = {f"{entry.name}, {content!r}": (entry, content) for entry in entries().values() for content in entry.broken}


@pytest.mark.parametrize(("entry", "content"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_such_file_is_refused_by_name(tmp_path: Path, entry: FileFormat, content: bytes) -> None:
    path = tmp_path / f"in{suffix(entry)}"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=re.escape(f"in{suffix(entry)}") + ".*" + re.escape(entry.broken[content])):
        entry.source(path).run()


@EACH
def test_a_file_without_rows(tmp_path: Path, entry: FileFormat) -> None:
    path = written(
        tmp_path / f"in{suffix(entry)}", entry, pa.table({"le": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    )
    if entry.is_headed:
        found = bound(from_files(path))
        assert (found.schema, list(found.events())) == (Schema.record(["v"]), [])
    else:
        with pytest.raises(SchemaError, match="there is no column 'le'"):
            from_files(path)


HISTORIES: dict[str, CHT[Any]] = {
    "ticks": CHT.from_rows([(1, 5, {"v": "a", "n": 2**53 + 1}), (2, INFINITY, {"v": None, "n": 7})]),
    "dates": CHT.from_rows([(DAY, INFINITY, {"v": "x", "n": 1}), (DAY + 1, DAY + 3, {"v": "y", "n": 2})], "us"),
}


@EACH
@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_goes_out_and_in(tmp_path: Path, entry: FileFormat, history: str) -> None:
    cht = HISTORIES[history]
    path = tmp_path / f"out{suffix(entry)}"
    FORMATS[entry.name].save(sd.from_rows(cht, unit=cht.unit).run(), path)
    assert from_files(path, end="re").run().cht() == cht
    table = entry.read(path)
    assert table.column_names == ["le", "re", "v", "n"]
    assert [row["n"] for row in table.to_pylist()] == [row.payload["n"] for row in cht]


@EACH
def test_physical_files_give_events(tmp_path: Path, entry: FileFormat) -> None:
    events: list[Event[Any]] = [Insert("a", 1, 5, {"v": 7}), Cti(2), Retract("a", 1, 5, 3, {"v": 7}), Cti(INFINITY)]
    table = pa.Table.from_pylist(pa.Table.from_pandas(events_to_pandas(events)).to_pylist())
    found = bound(from_files(written(tmp_path / f"in{suffix(entry)}", entry, table)))
    assert list(found.events()) == found.whole() == events


@EACH
def test_without_its_package_the_extra_is_named(tmp_path: Path, entry: FileFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = FORMATS[entry.name].needs
    if needs is None:
        assert len(from_files(written(tmp_path / f"in{suffix(entry)}", entry)).run()) == len(ROWS)
        return
    result, path = sd.from_rows([(1, 5, {"v": 7})]).run(), written(tmp_path / f"in{suffix(entry)}", entry)
    monkeypatch.setitem(sys.modules, needs[0], None)
    for use in (lambda: from_files(path), lambda: FORMATS[entry.name].save(result, tmp_path / "out")):
        with pytest.raises(QueryError, match=rf"files need {needs[0]}, which is not installed\nHint: pip.*\[{needs[1]}\]"):
            use()
