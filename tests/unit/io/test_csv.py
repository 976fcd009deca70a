"""CSV: types told by all rows or by a payload class, times, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, NewType, TypedDict

import numpy as np
import pandas as pd
import pytest

from streamdsl.errors import SchemaError
from streamdsl.io.binding import Bound, Inserts
from streamdsl.temporal import INFINITY, fields_of
from tests.unit.io.written import DAY, lifetimes, payloads, read_csv, written


def csv(tmp_path: Path, text: str, **options: Any) -> Bound:
    return read_csv(written(tmp_path / "in.csv", text), **options)


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

    with pytest.raises(SchemaError, match=r"the fields of Broken cannot be read: name 'Nowhere'[\s\S]*exist at run time"):
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


def test_missing_csv_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        SchemaError, match=r"in\.csv: there is no column 'le'; the columns are: t, v\n.*sd\.source\(name, start=, end=\).*--start"
    ):
        csv(tmp_path, "t,v\n1,2\n")


def test_several_csv_files_agree_on_types(tmp_path: Path) -> None:
    one, two = written(tmp_path / "1.csv", "le,v\n1,1\n"), written(tmp_path / "2.csv", "le,v\n2,x\n")
    assert payloads(read_csv([one, two])) == payloads(read_csv(tmp_path)) == [{"v": "1"}, {"v": "x"}]
