"""Numbers and texts between numpy and Arrow: what Arrow's own ways give, for all types and slices."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.expr.arrow_buffers import are_null, as_arrow, as_numpy, text_array, text_values
from streamdsl.expr.deferred import DeferredColumn, EncodedSource
from streamdsl.expr.table import concat_parts
from streamdsl.io.arrow_held import ArrowSource

KINDS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "bool"]
TIMES = [pa.timestamp("us", "UTC"), pa.timestamp("s"), pa.date32(), pa.date64(), pa.time32("ms"), pa.duration("ns")]

numbers = st.lists(st.integers(0, 100) | st.none(), max_size=20)
cuts = st.tuples(st.integers(0, 20), st.integers(0, 20))


@given(st.sampled_from(KINDS), numbers, cuts, st.booleans())
def test_numbers_come_from_arrow_as_they_are(kind: str, values: list[int | None], cut: tuple[int, int], chunked: bool) -> None:
    known = [None if value is None else np.dtype(kind).type(value).item() for value in values]
    whole = pa.array(known, pa.bool_() if kind == "bool" else pa.from_numpy_dtype(np.dtype(kind)))
    array: Any = whole[cut[0] : cut[1]]
    if chunked:
        array = pa.chunked_array([whole[cut[1] :], array, whole[: cut[0]]])
    expected = array.to_pylist()
    found = as_numpy(array)
    assert found.dtype == np.dtype(kind)
    assert found.tolist() == [np.dtype(kind).type(0).item() if value is None else value for value in expected]
    assert are_null(array).tolist() == [value is None for value in expected]


@given(st.sampled_from(TIMES), numbers, cuts)
def test_times_come_from_arrow_as_integers(kind: Any, values: list[int | None], cut: tuple[int, int]) -> None:
    integers = pa.int32() if kind.bit_width == 32 else pa.int64()
    array = pa.array(values, integers).view(kind)[cut[0] : cut[1]]
    assert as_numpy(array).tolist() == [value or 0 for value in values[cut[0] : cut[1]]]


@given(st.sampled_from(KINDS), numbers, st.booleans(), st.integers(1, 3))
def test_arrays_of_numbers_are_those_of_arrow(kind: str, values: list[int | None], masked: bool, step: int) -> None:
    column = np.array([value or 0 for value in values], dtype=kind)[::step]
    mask = np.array([value is None for value in values], dtype=np.bool_)[::step] if masked else None
    found = as_arrow(column, mask)
    found.validate(full=True)
    assert found == pa.array(column, mask=mask)


@given(st.lists(st.text(string.printable + "äß€😀") | st.none()))
def test_arrays_of_texts_are_those_of_arrow(texts: list[str | None]) -> None:
    found = text_array(texts)
    found.validate(full=True)
    assert found == pa.array(texts, pa.string())


@given(st.lists(st.text(string.printable + "äß€😀") | st.none()), cuts, st.sampled_from([pa.string(), pa.large_string()]))
def test_texts_come_from_arrow_as_they_are(texts: list[str | None], cut: tuple[int, int], kind: Any) -> None:
    whole = pa.array(texts, kind)
    array = whole[cut[0] : cut[1]]
    assert text_values(array).tolist() == array.to_pylist()
    chunked = pa.chunked_array([array, whole[cut[1] :]], kind)
    assert text_values(chunked).tolist() == chunked.to_pylist()


def test_many_texts_come_from_arrow_as_few_do() -> None:
    texts = pa.array(["a", None, "ä"] * 30_000)
    assert text_values(pa.chunked_array([texts])).tolist() == text_values(texts).tolist() == ["a", None, "ä"] * 30_000


def test_what_is_not_copied_is_not_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        as_numpy(pa.array([1, 2]))[0] = 3


def test_an_array_of_nulls_alone_has_no_memory() -> None:
    assert as_numpy(pa.nulls(2, pa.int64())).tolist() == [0, 0]
    assert are_null(pa.nulls(2)).tolist() == [True, True]


def test_a_lone_surrogate_is_no_text() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        text_array(["\ud800"])


OF_ROWS = st.sampled_from(
    [pa.string(), pa.large_string(), pa.float64(), pa.date32(), pa.timestamp("us", "UTC"), pa.dictionary(pa.int8(), pa.string())]
)


@given(st.lists(st.tuples(OF_ROWS, st.lists(st.integers(0, 9) | st.none(), max_size=6), st.randoms()), min_size=2, max_size=4))
def test_columns_over_arrow_one_after_the_other_have_the_values_of_each(drawn: list[Any]) -> None:
    parts = []
    for kind, values, rng in drawn:
        of = kind.value_type if pa.types.is_dictionary(kind) else kind
        is_text = pa.types.is_string(of) or pa.types.is_large_string(of)
        array = pa.array(
            [None if value is None else str(value) for value in values] if is_text else values, None if is_text else pa.int32()
        )
        array = (
            array.cast(pa.float64() if of == pa.float64() else pa.int64())
            if pa.types.is_timestamp(of) or of == pa.float64()
            else array
        )
        array = array if of == pa.float64() else array.cast(of)
        held = ArrowSource(pa.chunked_array([array.dictionary_encode() if pa.types.is_dictionary(kind) else array]))
        part = DeferredColumn(held, np.array([rng.randrange(len(values)) for _ in values], dtype=np.int64))
        if rng.random() < 0.5:
            codes, known = part.encoded()  # so it is coded from here on
            part = DeferredColumn(EncodedSource(codes, known)) if rng.random() < 0.5 else part
        parts.append(part)
    whole = concat_parts(parts)
    assert whole.tolist() == [value for part in parts for value in part.tolist()]


def test_codes_that_came_and_those_that_were_found_here_stay_codes_together() -> None:
    came = DeferredColumn(EncodedSource(np.array([1, 0, 1]), np.array(["a", "b"], dtype=object)))
    here = DeferredColumn(ArrowSource(pa.chunked_array([["b", None, "c", "b"]])), np.array([0, 1, 3]))
    assert here.codes.tolist() == [0, 1, 0]
    whole = concat_parts([came, here])
    assert isinstance(whole, DeferredColumn)
    assert whole.tolist() == ["b", "a", "b", "b", None, "b"]


def test_texts_of_several_pieces_are_not_made_before_they_are_read() -> None:
    pieces = [DeferredColumn(ArrowSource(pa.chunked_array([texts]))) for texts in (["a", "b"], ["b", None], ["a"])]
    whole = concat_parts(pieces)
    assert isinstance(whole, DeferredColumn)
    assert "_all" not in whole.source.__dict__
    assert whole.codes.tolist() == [0, 1, 1, 2, 0]
