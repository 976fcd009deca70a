"""Texts as codes: hashes only say which texts to compare."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.expr import kernel
from streamdsl.expr.encoding import BYTE_MASKS, TEXT_HASHER, TEXT_MATCHER, encode_texts
from streamdsl.io.arrow_fingerprints import KnownTexts, fingerprints

_FACTOR = 0x2545F4914F6CDD1D
_ALL = 2**64 - 1
_INVERSE = pow(_FACTOR, -1, 2**64)


def _hashed(text: bytes) -> int:
    """Return the hash of eight bytes."""
    mixed = (8 ^ int.from_bytes(text, "little")) * _FACTOR & _ALL
    signed = mixed - 2**64 if mixed >> 63 else mixed
    return (signed ^ (signed >> 32)) * _FACTOR & _ALL


def _with_hash(wanted: int) -> bytes | None:
    """Return the eight bytes that have a hash, None if no eight have it."""
    folded = wanted * _INVERSE & _ALL
    if folded >> 63:
        return None
    mixed = folded ^ (folded >> 32)
    return ((mixed * _INVERSE & _ALL) ^ 8).to_bytes(8, "little")


def test_colliding_texts_have_codes_of_their_own() -> None:
    first = b"customer"
    # These bits tell neither the place of a text nor which ones are compared with it.
    others = [_with_hash(_hashed(first) ^ (bit << 49)) for bit in range(1, 200)]
    texts = [first, *[other for other in others if other is not None][:5]]
    assert len({_hashed(text) & (2**49 - 1) for text in texts}) == 1 < len(set(texts))
    content = b"".join([*texts, *texts])
    words = np.ndarray(len(content) + 1, "<i8", content + bytes(8), strides=(1,))
    (firsts, begins, known), codes = np.zeros((3, 64), dtype=np.intp), np.zeros(2 * len(texts), dtype=np.intp)
    stops, nulls = np.arange(0, len(content) + 1, 8), np.zeros(0, dtype=np.bool_)
    with np.errstate(over="ignore"):
        number = encode_texts(stops, words, nulls, BYTE_MASKS, np.full(64, -1), firsts, begins, known, codes)
    assert number == len(texts)
    assert codes.tolist() == [*range(number), *range(number)]


TEXTS = st.lists(st.none() | st.text("ab\0é", max_size=20) | st.binary(max_size=9).map(bytes.hex), max_size=12)


@given(TEXTS, TEXTS, st.integers(0, 2), st.sampled_from([pa.string(), pa.large_string()]))
def test_texts_are_hashed_and_compared_in_compiled_loops_as_in_columns(
    texts: list[str | None], known: list[str | None], first: int, kind: Any
) -> None:
    pytest.importorskip("numba")
    for each in (TEXT_HASHER, TEXT_MATCHER):
        each.load()
    given = pa.array(["before", *texts, *known], kind)[first:]
    others = KnownTexts(pa.array([None, *known], kind))
    places = np.random.default_rng(len(texts)).integers(0, len(known) + 1, len(given))
    places[len(given) - len(known) :] = np.arange(len(known)) + 1

    pairs = list(zip(given.to_pylist(), others.array.take(pa.array(places)).to_pylist(), strict=True))
    alike = [(one is None) == (other is None) for one, other in pairs]  # a null is never compared with a text

    def found(few: int) -> list[Any]:
        with patch.object(kernel, "CALL_FROM", few):
            hashes = fingerprints(given)
            assert hashes is not None
            return [hashes.integers.tolist(), KnownTexts(others.array).are(given, places)[alike].tolist()]

    assert found(0) == found(2**40)
    assert found(0)[1] == [one == other for one, other in itertools.compress(pairs, alike)]
