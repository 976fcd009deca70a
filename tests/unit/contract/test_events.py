"""The public contract, section 1: events, CHTs, and what is refused of them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import streamdsl as sd
from streamdsl import CHT, INFINITY, Cti, Insert, Record, Retract
from streamdsl.errors import CtiViolation, EventError, FieldNotFound, StreamDslError, UnitError, UserCodeError
from tests.unit.contract.common import ENGINES, X, refused


def test_events_are_immutable_comparable_and_can_be_pickled() -> None:
    for event in (Insert("a", 1, 5, "x"), Retract("a", 1, 5, 3), Cti(4), sd.point("a", 3, "x"), sd.edge_end("a", 1, 5)):
        assert pickle.loads(pickle.dumps(event)) == event == copy.copy(event)
        hash(event)
        with pytest.raises(AttributeError):
            setattr(event, next(iter(event.__dataclass_fields__)), 7)
    assert sd.sync_time(Insert("a", 1, 5, "x")) == 1
    assert sd.sync_time(Retract("a", 1, 5, 3)) == 3
    assert sd.sync_time(Retract("a", 1, 5, 9)) == 5
    old, new = sd.correct(sd.edge_start("a", 3, "x"), "y", "b")
    assert (old, new) == (Retract("a", 3, INFINITY, 3, "x"), Insert("b", 3, INFINITY, "y"))


def test_what_is_no_event_is_refused_by_what_takes_one() -> None:
    with pytest.raises(
        EventError, match=r"event 'a' is refused: an insertion is corrected(.|\n)*Hint: correct\(event, payload, new_id"
    ):
        sd.correct("a", "y", "b")  # type: ignore[arg-type]
    with pytest.raises(EventError, match=r"event 7 is refused: it is no event(.|\n)*Hint: sd\.Insert"):
        sd.sync_time(7)  # type: ignore[arg-type]


def test_a_second_event_of_an_id_is_told_how_a_payload_is_replaced() -> None:
    session = sd.source("s").open()
    session.push([sd.point("a", 3, "x")])
    with pytest.raises(EventError, match=r"known already(.|\n)*Hint: .*sd\.correct\(event, payload, new_id\)"):
        session.push([sd.point("a", 3, "y")])


def test_a_field_of_a_result_of_each_group_is_told_where_it_is() -> None:
    changes = sd.from_rows([(1, 2, {"k": "a", "v": 1})]).group_by("k").apply(lambda g: g.to_edges())
    with pytest.raises(FieldNotFound, match=r"fields are: _0, _1\nHint: the payload is a pair, e\[0\] and e\[1\]: of a query"):
        changes.where(lambda e: e.v > 0)  # type: ignore[attr-defined]
    assert len(changes.where(lambda e: e[1]["v"] > 0).run()) == 1


def test_chts_are_multisets_in_which_ids_zero_lengths_and_number_types_do_not_count() -> None:
    nan = float("nan")
    assert CHT.from_rows([(1, 5, {"x": nan}), (1, 5, 1)]) == CHT.from_rows([(1, 5, 1.0), (1, 5, Record(x=nan)), (3, 3, "gone")])
    assert CHT.from_rows([(1, 5, 1)] * 2) != CHT.from_rows([(1, 5, 1)])
    assert len(CHT.from_rows([(3, 3, "gone")])) == 0
    assert [row.payload for row in CHT.from_rows([(1, 2, p) for p in ("b", None, nan, 2, {"a": 1})])][:2] == [None, 2]


@pytest.mark.parametrize("payloads", [[1, 2], [(1, "a"), (2, None)], [{"k": 1, "v": None}, {"k": 2, "v": "x"}], [2**70, 1], []])
def test_a_cht_goes_to_pandas_and_back(payloads: list[Any]) -> None:
    cht = CHT.from_rows([(n, INFINITY if n else 7, payload) for n, payload in enumerate(payloads)])
    assert sd.from_pandas(cht.to_pandas(), start="le", end="re").run().cht() == cht


MALFORMED: dict[str, list[Any]] = {
    "its LE 5 is after its RE 1": [Insert("bad", 5, 1, "x")],
    "its LE is not finite": [Insert("bad", INFINITY, INFINITY, "x")],
    "known already": [Insert("bad", 1, 5, "x"), Insert("bad", 7, 8, "x")],
    "no event with the id": [Retract("bad", 1, 5, 3)],
    "its RE 6 is not the event's current one, 5": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 6, 3)],
    "its LE 2 is not": [Insert("bad", 1, 5, "x"), Retract("bad", 2, 5, 3)],
    "its payload is not": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 5, 3, "y")],
    "is before its LE": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 5, 0)],
    "fully retracted already": [Insert("bad", 1, 5, "x"), Retract("bad", 1, 5, 1), Retract("bad", 1, 1, 3)],
    "is before the CTI 6": [Cti(6), Insert("bad", 5, 9, "x")],
    "is before the CTI 7": [Insert("bad", 5, 9, "x"), Cti(7), Retract("bad", 5, 9, 6)],
    "its id is not hashable": [Insert(["bad"], 1, 5, "x")],  # type: ignore[arg-type]
    "neither an Insert": ["bad"],
}


@pytest.mark.parametrize("rule", MALFORMED)
def test_bad_input_is_refused_with_an_error_that_names_the_event_and_the_rule(rule: str) -> None:
    events = MALFORMED[rule]
    expected = CtiViolation if "CTI" in rule else EventError
    with refused(expected, "bad", rule):
        CHT.from_events(events)
    for engine in ENGINES:
        with refused(expected, "bad", rule):
            X.run({"x": sd.from_events(events)}, engine=engine)
    session = X.open()
    with refused(expected, "bad", rule):
        session.push(events)
    assert session.push([Insert("good", 1, 2, "x")]), "the session goes on"


def test_a_row_of_a_cht_ends_after_it_starts() -> None:
    for le, re_ in ((5, 1), (INFINITY, INFINITY)):
        with pytest.raises(EventError):
            CHT.from_rows([(le, re_, "x")])
        with pytest.raises(EventError):
            sd.from_rows([(le, re_, "x")]).run()


def test_every_error_is_of_one_tree_and_can_be_pickled() -> None:
    for error in (
        CtiViolation(Insert("a", 1, 2, 3), 1, 5),
        FieldNotFound("x", ["y"]),
        UserCodeError(ValueError("boom"), operator="where_1", event="a"),
        UnitError("no", hint="yes"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert isinstance(again, StreamDslError)
