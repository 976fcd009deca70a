"""The law of field names: a field of any name is read by `e["name"]`, traced, called and in the reference alike.

And `e.name` is the field of that name, or refused with `e["name"]` as the hint: never something else.
"""

from __future__ import annotations

import keyword
from collections import namedtuple
from collections.abc import Callable
from dataclasses import make_dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.engine.starting import restored
from streamdsl.errors import FieldNotFound, QueryError, UserCodeError
from streamdsl.temporal import Record
from streamdsl.temporal.names import exact, literal
from streamdsl.temporal.payload import is_taken, records, records_of
from tests.laws.profiles import examples


class Named(StrEnum):
    ZONE = "zo'ne"


HOSTILE: list[str] = [
    *(
        "items",
        "keys",
        "values",
        "get",
        "_asdict",
        "_items",
        "_fields",
        "cast",
        "count",
        "index",
        "value",
        "shard",
        "le",
        "re",
        "key",
    ),
    *("__class__", "__doc__", "__items__", "__dict__", "__len__", "_schema", "_side", "_node", "self", "row", "new", "put", "v0"),
    *("class", "lambda", "None", "True", "def", "import", "with space", " ", "", "1", "a.b", "a-b", "_0", "é", "名前", "🙂"),
    *("'", '"', "'''", '"""', "\\", "\\'", "\n", "\r\n", "\t", "\0", "{", "}", "{0}", "{x!r}", "%s", "%", "$x", "`", ";", "#"),
    *("\ud800", "\udfff", "\u2028", "\u202e", "\ufeff", "x" * 10_000),
    *(
        "__import__('os').system('exit 1')",
        "': 0}) or exit() or ({'",
        '": 0}) or exit() or ({"',
        "<script>alert(1)</script>",
        "a&b",
    ),
]
NAMES: list[Any] = [*HOSTILE, Named.ZONE, np.str_("num'py")]


def checked(name: Any, query: sd.Stream[Any], wanted: list[Any]) -> None:
    for engine in ("local", "reference"):
        assert [row.payload for row in query.run(engine=engine).cht()] == wanted, (name, engine)


def read(name: str) -> list[Callable[[Any], Any]]:
    return [lambda e: e[name], lambda e: e[name] if e else None, sd.col(name)]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_a_field_of_any_name_is_an_item_of_every_row(name: Any) -> None:
    rows = [(1, 5, {name: 3, "other": "x"}), (2, 6, {name: 4, "other": "y"})]
    stream = sd.from_rows(rows)
    plain = exact(name)
    for f in read(plain):
        checked(name, stream.where(lambda e: e[plain] == 3), [{plain: 3, "other": "x"}])
        checked(name, stream.where(lambda e: e[plain] == 3 and True), [{plain: 3, "other": "x"}])
        checked(name, stream.select(f), [3, 4])
        checked(name, stream.select(lambda e: {plain: e[plain] + 1}).select(f), [4, 5])
        checked(name, stream.distinct(), [{plain: 3, "other": "x"}, {plain: 4, "other": "y"}])
        checked(name, stream.tumbling_window(100).aggregate(**{plain: sd.sum(f)}), [{plain: 7}])
        groups = stream.group_by([plain]).tumbling_window(100).aggregate(rows=sd.count())
        checked(name, groups, [{plain: 3, "rows": 1}, {plain: 4, "rows": 1}])
        checked(name, stream.join(stream, on=plain, select=lambda a, b: a[plain] * b[plain]), [9, 16])


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_names_are_shown_and_come_back_whatever_is_in_them(name: Any) -> None:
    plain = exact(name)
    stream = sd.source("s").where(sd.col(name) == 3)
    assert sd.composing.plan_from_json(stream.plan().to_json()) == stream.plan()
    assert stream.explain()
    assert "<script>" not in stream._repr_html_()
    result = sd.from_rows([(1, 5, {name: 3})]).run()
    assert "<script>" not in result._repr_html_()
    assert dict(Record({plain: 1})) == {plain: 1} == {**Record({plain: 1})}
    assert eval(literal(name)) == plain
    assert [*records([plain], [[1, 2]]), *records_of((plain,), [(3,)])] == [{plain: n} for n in (1, 2, 3)]
    session = sd.source("s").where(lambda e: e[plain] > 1).open()
    out = [event for n in range(3) for event in session.push([sd.Insert(n, n, n + 5, {name: n})])]
    assert [(event.payload, list(map(type, event.payload))) for event in out] == [({plain: 2}, [str])]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.isidentifier() and not keyword.iskeyword(name)])
def test_a_field_as_an_attribute_is_the_field_or_refused_with_the_item_as_the_hint(name: str) -> None:
    rows = sd.from_rows([(1, 5, {name: 3, "other": 1})])
    traced = eval(f"lambda e: e.{name} == 3")
    opaque = eval(f"lambda e: e.{name} == 3 and True")
    results = []
    for function in (traced, opaque):
        try:
            results.append(len(rows.where(function).run().cht()))
        except (QueryError, UserCodeError) as refused:
            results.append(-1 if f"write e[{name!r}] for the field" in str(refused) else 0)
    assert results in ([1, 1], [-1, -1]), results
    assert (results == [-1, -1]) == is_taken(name)


def test_a_class_s_fields_are_items_too_traced_and_called() -> None:
    fields = ["items", "keys", "count", "get", "value", "name"]
    for cls in (
        make_dataclass("Trip", fields),
        make_dataclass("Trip", fields, frozen=True, slots=True),
        namedtuple("Trip", fields),
    ):
        rows = sd.from_rows([(1, 5, cls(*range(3, 9)))])
        for number, name in enumerate(fields, 3):
            for function in (*read(name), eval(f"lambda e: e.{name}"), eval(f"lambda e: e.{name} if e else e")):
                checked(name, rows.select(function), [number])
        checked(
            "all",
            rows.where(lambda e, cls=cls: e["items"] == 3 and isinstance(e, cls) and e.__class__ is cls),  # type: ignore[misc]
            [cls(*range(3, 9))],
        )
        checked("itself", rows.select(lambda e: e if e["items"] else None), [cls(*range(3, 9))])
        with pytest.raises((UserCodeError, FieldNotFound)):
            rows.where(lambda e: e["nope"] == 3 and True).run()


@examples(24)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=4, unique=True), st.integers(-5, 5))
def test_random_names_are_read_alike(names: list[str], wanted: int) -> None:
    payloads = [{name: at + n for n, name in enumerate(names)} for at in range(-3, 4)]
    rows = sd.from_rows([(at, at + 2, payload) for at, payload in enumerate(payloads)])
    for name in names:
        expected = [payload for payload in payloads if payload[name] == wanted]
        checked(name, rows.where(lambda e, name=name: e[name] == wanted), expected)  # type: ignore[misc]
        checked(name, rows.where(lambda e, name=name: e[name] == wanted or False), expected)  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", [name for name in HOSTILE if name not in ("le", "re") and "\ud800" != name != "\udfff"], ids=ascii
)
def test_columns_of_frames_have_any_name(name: str) -> None:
    frame = pd.DataFrame({"le": [1, 2], name: [3, 4]})
    checked(name, sd.from_pandas(frame).where(lambda e: e[name] == 3), [{name: 3}])


@pytest.mark.parametrize("made", [dict, sd.Record])
def test_a_row_that_comes_alone_has_plain_names_too_in_a_checkpoint(made: Any) -> None:
    query = sd.source("s")
    session = query.open()
    for number in range(3):
        session.push([sd.Insert(number, number, 9, made({Named.ZONE: 1, "size": 2}))])
    saved = session.snapshot()
    assert restored(query.plan(), None, saved).snapshot() == saved
