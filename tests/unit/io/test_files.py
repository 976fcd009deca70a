"""Parquet, CSV and JSON lines: real files, read in pieces."""

from __future__ import annotations

import datetime as dt
import json
import math
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, NewType, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamdsl.errors import EventError, QueryError, SchemaError, UnitError
from streamdsl.expr.schema import Schema
from streamdsl.io import csv_files, files
from streamdsl.io.binding import Bound, Inserts
from streamdsl.io.frames import cht_to_arrow, events_to_pandas
from streamdsl.io.sources import read_csv, read_jsonl, read_parquet
from streamdsl.temporal import CHT, INFINITY, Cti, Insert, Retract, fields_of

DAY = 1360281600 * 10**6


@pytest.fixture(params=[2, 65_536])
def piece_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(files, "PIECE_ROWS", request.param)
    monkeypatch.setattr(csv_files, "PIECE_ROWS", request.param)
    return int(request.param)


def payloads(bound: Bound) -> list[Any]:
    return [event.payload for event in bound.events() if isinstance(event, Insert)]


def lifetimes(bound: Bound) -> list[tuple[int, int]]:
    return [(event.le, event.re) for event in bound.events() if isinstance(event, Insert)]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def csv(tmp_path: Path, text: str, **options: Any) -> Bound:
    return read_csv(written(tmp_path / "in.csv", text), **options)


def jsonl(tmp_path: Path, *lines: str, **options: Any) -> Bound:
    return read_jsonl(written(tmp_path / "in.jsonl", "\n".join(lines)), **options)


def test_parquet_is_streamed_in_batches(tmp_path: Path, piece_rows: int) -> None:
    pq.write_table(pa.table({"t": [1, 2, 3], "v": ["a", None, "c"]}), tmp_path / "in.parquet", row_group_size=2)
    bound = read_parquet(tmp_path / "in.parquet", start="t")
    assert (bound.unit, bound.schema, bound.size_hint) == ("tick", Schema.record(["v"]), 3)
    assert [len(piece) for piece in bound.pieces()] == ([2, 1] if piece_rows == 2 else [3])
    expected = [Insert(0, 1, 2, {"v": "a"}), Insert(1, 2, 3, {"v": None}), Insert(2, 3, 4, {"v": "c"})]
    assert list(bound.events()) == list(bound.events()) == expected


def test_only_the_needed_columns_are_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"le": [1], "v": [2], "unwanted": [3]}), tmp_path / "in.parquet")
    bound = read_parquet(tmp_path / "in.parquet", Schema.record(["v"]))
    assert payloads(bound) == [{"v": 2}]
    (batch, _, _) = next(files.ParquetFiles([str(tmp_path / "in.parquet")]).pieces(["le", "v"]))
    assert list(batch.names) == ["le", "v"]


def test_a_directory_or_a_list_of_parquet_files(tmp_path: Path) -> None:
    for name, start in (("b", 2), ("a", 1)):
        pq.write_table(pa.table({"le": [start]}), tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").touch()
    assert lifetimes(read_parquet(tmp_path)) == [(1, 2), (2, 3)]
    assert lifetimes(read_parquet([tmp_path / "b.parquet", str(tmp_path / "a.parquet")])) == [(2, 3), (1, 2)]
    assert [event.id for event in read_parquet(tmp_path).events()] == [0, 1]  # type: ignore[union-attr]


def test_no_file_is_refused(tmp_path: Path) -> None:
    for read in (read_parquet, read_csv, read_jsonl):
        with pytest.raises(QueryError, match="no file to read"):
            read(tmp_path)
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "missing")


def test_a_later_file_with_other_columns_is_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"le": [1], "v": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"le": [1], "w": [1]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"b\.parquet.*'v'.*le"):
        list(read_parquet(tmp_path).events())


def test_a_directory_with_the_name_of_a_file_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "out.parquet").mkdir()
    pq.write_table(pa.table({"le": [7]}), tmp_path / "out.parquet" / "part-0.parquet")
    assert lifetimes(read_parquet(tmp_path)) == lifetimes(read_parquet(tmp_path / "out.parquet")) == [(7, 8)]


@pytest.mark.parametrize("paths", [5, None, {"a.csv": 1}])
def test_paths_are_paths(paths: Any) -> None:
    with pytest.raises(QueryError, match=f"not by a {type(paths).__name__}"):
        read_csv(paths)


def test_what_is_no_parquet_is_refused_by_name(tmp_path: Path) -> None:
    for text in ("", "le,v\n1,2\n"):
        with pytest.raises(SchemaError, match=r"in\.parquet is no Parquet file"):
            read_parquet(written(tmp_path / "in.parquet", text))


def test_an_empty_parquet_file_has_a_unit_and_a_schema(tmp_path: Path) -> None:
    pq.write_table(pa.table({"le": pa.array([], pa.timestamp("ns")), "v": pa.array([], pa.int64())}), tmp_path / "in.parquet")
    bound = read_parquet(tmp_path / "in.parquet")
    assert (bound.unit, bound.schema, bound.size_hint, list(bound.events())) == ("us", Schema.record(["v"]), 0, [])


def test_errors_name_file_and_row(tmp_path: Path, piece_rows: int) -> None:
    pq.write_table(pa.table({"le": [1, 2, None]}), tmp_path / "in.parquet")
    with pytest.raises(EventError, match=r"row 2 of .*in\.parquet, column 'le'"):
        list(read_parquet(tmp_path / "in.parquet").events())
    with pytest.raises(EventError, match=r"row 2 of .*in\.csv"):
        list(csv(tmp_path, "le,v\n1,1\n2,1\n,1\n").events())
    with pytest.raises(UnitError, match=r"row 2 of .*in\.csv, column 'le'"):
        list(csv(tmp_path, "le\n2013-02-08\n2013-02-08\nsoon-or-late\n").events())


def test_a_history_goes_through_parquet_unchanged(tmp_path: Path) -> None:
    rows = [(DAY, INFINITY, {"v": 2**60 + 1, "s": None}), (DAY + 1, DAY + 3, {"v": None, "s": "x"})]
    cht = CHT.from_rows(rows, "us")
    pq.write_table(cht_to_arrow(cht), tmp_path / "arrow.parquet")
    cht.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    for path in (tmp_path / "arrow.parquet", tmp_path / "pandas.parquet"):
        bound = read_parquet(path, end="re")
        assert bound.unit == "us"
        assert CHT.from_events(bound.events()) == cht


def test_scalars_go_through_parquet_as_scalars(tmp_path: Path) -> None:
    cht: CHT[Any] = CHT.from_rows([(1, 5, "x"), (2, INFINITY, "y")])
    cht.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    pq.write_table(cht_to_arrow(cht), tmp_path / "arrow.parquet")
    assert payloads(read_parquet(tmp_path / "pandas.parquet", end="re")) == ["x", "y"]
    assert payloads(read_parquet(tmp_path / "arrow.parquet", end="re")) == ["x", "y"]


def test_physical_files_give_events(tmp_path: Path, piece_rows: int) -> None:
    events = [Insert("a", 1, 5, {"v": 7}), Cti(2), Retract("a", 1, 5, 3, {"v": 7}), Cti(INFINITY)]
    frame = events_to_pandas(events)
    frame.to_parquet(tmp_path / "in.parquet")
    frame.to_csv(tmp_path / "in.csv", index=False)
    for bound in (read_parquet(tmp_path / "in.parquet"), read_csv(tmp_path / "in.csv")):
        assert list(bound.events()) == events


def test_physical_files_are_read_once(tmp_path: Path, piece_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [Insert(n, n, n + 5, {"v": n}) for n in range(5)]
    events_to_pandas(events).to_parquet(tmp_path / "in.parquet")
    bound = read_parquet(tmp_path / "in.parquet")
    readings: list[int] = []
    again = Bound(bound.unit, bound.schema, lambda: readings.append(1) or bound.reader())  # type: ignore[func-returns-value]
    assert again.whole() == events
    assert readings == [1]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from streamdsl.io.sources import read_parquet\n"
        "from streamdsl.errors import QueryError\n"
        "try: read_parquet('x.parquet')\n"
        "except QueryError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pyarrow" in done.stdout
    assert "pip install 'streamdsl[arrow]'" in done.stdout


def test_csv_types_do_not_depend_on_the_pieces(tmp_path: Path, piece_rows: int) -> None:
    text = (
        "le,n,f,b,s,big,m,none,nan\n"
        "1,1,1,True,1,1,True,,1\n"
        "2,,2,false,2,2,1,,NaN\n"
        "3,9007199254740993,0.5,TRUE,x,18446744073709551616,False,,-inf\n"
    )
    bound = csv(tmp_path, text)
    first, second, third = payloads(bound)
    assert dict(first) == {"n": 1, "f": 1.0, "b": True, "s": "1", "big": 1, "m": "True", "none": None, "nan": 1.0}
    assert [type(value) for value in first.values()] == [int, float, bool, str, int, str, type(None), float]
    assert (second.n, second.m) == (None, "1")
    assert math.isnan(second.nan)
    assert dict(third) == {
        "n": 2**53 + 1,
        "f": 0.5,
        "b": True,
        "s": "x",
        "big": 2**64,
        "m": "False",
        "none": None,
        "nan": -math.inf,
    }
    assert payloads(bound)[0] == first


def test_csv_numbers_are_exact_and_words_for_null_are_text(tmp_path: Path) -> None:
    (only,) = payloads(csv(tmp_path, 'le,a,b,c\n1,0.30000000000000004,NA,"x, y"\n'))
    assert dict(only) == {"a": 0.1 + 0.2, "b": "NA", "c": "x, y"}


def test_csv_typed_columns_are_typed(tmp_path: Path) -> None:
    (piece,) = csv(tmp_path, "le,n,f,b\n1,1,0.5,true\n2,2,1.5,false\n").pieces()
    assert isinstance(piece, Inserts)
    assert [column.dtype for column in piece.table.columns.values()] == [np.int64, np.float64, np.bool_]


@pytest.mark.parametrize(
    ("start", "ticks"),
    [("2013-02-08", DAY), ("2013-02-08T00:00:01Z", DAY + 10**6), ("2013-02-08 00:00:00.000002+00:00", DAY + 2), ("7", 7)],
)
def test_csv_times(tmp_path: Path, start: str, ticks: int) -> None:
    bound = csv(tmp_path, f"le,re\n{start},\n", end="re")
    assert lifetimes(bound) == [(ticks, INFINITY)]
    assert bound.unit == ("tick" if ticks == 7 else "us")


@pytest.mark.parametrize("text", ["le,v,v\n1,2,3\n", "le,le\n1,2\n", 'le,"v",v\n', "le,v,v,v.1\n1,2,3,4\n"])
def test_csv_names_need_to_be_unique(tmp_path: Path, text: str) -> None:
    with pytest.raises(SchemaError, match=r"in\.csv: several columns have the same name: (v|le)\n"):
        csv(tmp_path, text)


Zip = NewType("Zip", str)


class Row(TypedDict):
    value: str


class Pair(NamedTuple):
    value: Literal["00123", "7"] | None


@dataclass
class Zone:
    value: Zip


@pytest.mark.parametrize("payload", [str, Zip, Row, Pair, Zone])
def test_text_that_looks_like_a_number_stays_text_where_the_payload_says_so(tmp_path: Path, payload: Any) -> None:
    (first, second) = payloads(csv(tmp_path, "le,value\n1,00123\n2,7\n", payload=payload))
    values = [item if payload in (str, Zip) else fields_of(item)[0][1] for item in (first, second)]
    assert values == ["00123", "7"]


def test_a_float_is_a_float_and_an_int_an_int(tmp_path: Path) -> None:
    assert repr(payloads(csv(tmp_path, "le,value\n1,2\n", payload=float))) == "[2.0]"
    with pytest.raises(SchemaError, match=r"'2\.5' is no int"):
        payloads(csv(tmp_path, "le,value\n1,2.5\n", payload=int))


def test_types_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    @dataclass
    class Broken:
        value: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaError, match=r"the fields of Broken cannot be read: name 'Nowhere'[\s\S]*imported at run time"):
        csv(tmp_path, "le,value\n1,2\n", payload=Broken)


@dataclass
class Trip:
    zip: str
    fare: float | None
    seats: int
    cash: bool
    pickup: dt.datetime
    day: dt.date | None = None
    tip: Decimal = Decimal(0)


def test_a_payload_class_tells_the_types_of_a_csv(tmp_path: Path, piece_rows: int) -> None:
    text = (
        "pickup,zip,fare,seats,cash,day,tip,unwanted\n"
        "2013-02-08T00:00:01,00123,3,18446744073709551616,true,2013-02-08,0.10,x\n"
        "2013-02-08T00:00:02,7,,2,FALSE,,1,y\n"
        "2013-02-08T00:00:03,8,NaN,3,true,,2,z\n"
    )
    bound = csv(tmp_path, text, payload=Trip, start="pickup")
    first, second, third = payloads(bound)
    assert first == Trip("00123", 3.0, 2**64, True, dt.datetime(2013, 2, 8, 0, 0, 1), dt.date(2013, 2, 8), Decimal("0.10"))
    assert type(first.fare) is float
    assert (second.zip, second.fare, second.cash, second.day) == ("7", None, False, None)
    assert math.isnan(third.fare)
    assert [le for le, _ in lifetimes(bound)] == [DAY + 10**6, DAY + 2 * 10**6, DAY + 3 * 10**6]


@pytest.mark.parametrize(("column", "bad"), [("seats", "two"), ("fare", "much"), ("cash", "7"), ("day", "friday"), ("tip", "x")])
def test_a_field_that_is_not_of_its_type_is_refused_with_its_place(
    tmp_path: Path, piece_rows: int, column: str, bad: str
) -> None:
    good = {"pickup": "2013-02-08", "zip": "1", "fare": "1", "seats": "1", "cash": "true", "day": "", "tip": "1"}
    rows = [good, good, {**good, column: bad}]
    text = "\n".join([",".join(good), *(",".join(row.values()) for row in rows)])
    with pytest.raises(SchemaError, match=rf"row 2 of .*in\.csv, column '{column}': '{bad}' is no (int|float|bool|date|decimal)"):
        payloads(csv(tmp_path, text, payload=Trip, start="pickup"))


def test_moments_of_a_csv_keep_zone_and_nanoseconds(tmp_path: Path) -> None:
    @dataclass
    class At:
        at: dt.datetime

    At.__annotations__["at"] = dt.datetime
    found = payloads(csv(tmp_path, "le,at\n1,2013-02-08T00:00:00+02:00\n2,2013-02-08T00:00:00.000000001\n", payload=At))
    assert found[0].at.utcoffset() == dt.timedelta(hours=2)
    assert found[1].at == pd.Timestamp("2013-02-08T00:00:00.000000001")


@pytest.mark.parametrize("text", ["", "le,v\n1,2,3\n4,5,6\n", "le,v\n1,2\n4,5,6\n"])
def test_what_is_no_csv_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SchemaError, match=r"in\.csv"):
        payloads(csv(tmp_path, text))


def test_a_csv_with_a_header_only(tmp_path: Path) -> None:
    bound = csv(tmp_path, "le,v\n")
    assert (list(bound.events()), bound.unit, bound.schema) == ([], None, Schema.record(["v"]))


def test_missing_csv_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"in\.csv: there is no column 'le'; the columns are: t, v"):
        csv(tmp_path, "t,v\n1,2\n")


def test_several_csv_files_agree_on_types(tmp_path: Path) -> None:
    one, two = written(tmp_path / "1.csv", "le,v\n1,1\n"), written(tmp_path / "2.csv", "le,v\n2,x\n")
    assert payloads(read_csv([one, two])) == payloads(read_csv(tmp_path)) == [{"v": "1"}, {"v": "x"}]


def test_json_values_are_exact(tmp_path: Path, piece_rows: int) -> None:
    rows: list[dict[str, Any]] = [
        {"le": 1, "re": None, "n": 2**70, "s": None, "o": {"a": [1]}},
        {"le": 2, "re": 5, "n": 0.5, "s": "é", "o": {}},
        {"le": 3, "re": 9, "n": True, "s": "", "o": {}},
    ]
    bound = jsonl(tmp_path, *map(json.dumps, rows), end="re")
    expected = [{name: value for name, value in row.items() if name not in ("le", "re")} for row in rows]
    assert payloads(bound) == payloads(bound) == expected
    assert lifetimes(bound) == [(1, INFINITY), (2, 5), (3, 9)]
    assert (bound.unit, bound.schema) == ("tick", Schema.record(["n", "s", "o"]))
    assert [event.id for event in bound.events()] == [0, 1, 2]  # type: ignore[union-attr]


def test_json_dates_are_text(tmp_path: Path) -> None:
    bound = jsonl(
        tmp_path, '{"t": "2013-02-08T00:00:00Z", "v": 1}', "", '{"t": "2013-02-08T00:00:01Z", "v": 2}', start="t", unit="s"
    )
    assert lifetimes(bound) == [(1360281600, 1360281601), (1360281601, 1360281602)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"le": 2}', "line 2 lacks 'v'"),
        ('{"le": 2, "v": 1, "w": 1}', "line 2 has also 'w'"),
        ('{"le": 2,', "line 2 is no JSON"),
        ("[1]", r"line 2 holds no JSON object: \[1\]$"),
    ],
)
def test_a_line_that_does_not_fit_is_refused_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    bound = jsonl(tmp_path, '{"le": 1, "v": 1}', line)
    with pytest.raises(SchemaError, match=message):
        list(bound.events())


def test_json_is_utf_8_with_or_without_a_mark(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes('\ufeff{"le": 1, "v": "é"}'.encode())
    assert payloads(read_jsonl(tmp_path / "in.jsonl")) == [{"v": "é"}]
    (tmp_path / "in.jsonl").write_bytes('{"le": 1, "v": "é"}'.encode("latin-1"))
    with pytest.raises(SchemaError, match=r"line 1 is no JSON.*utf-8"):
        read_jsonl(tmp_path / "in.jsonl")


def test_json_extras_are_dropped_with_a_payload(tmp_path: Path) -> None:
    @dataclass
    class Only:
        v: int

    bound = jsonl(tmp_path, '{"le": 1, "v": 1, "w": 2}', '{"le": 2, "v": 3}', payload=Only)
    assert payloads(bound) == [Only(1), Only(3)]


def test_an_empty_json_file_lacks_its_columns(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no column 'le'"):
        jsonl(tmp_path, "")
