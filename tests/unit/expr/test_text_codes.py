"""Texts are told apart: hashes only say which texts to compare."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.io.arrow_fingerprints import are_same, fingerprints
from streamdsl.io.arrow_ranks import ranks

TEXTS = st.lists(st.none() | st.text("ab\0é", max_size=20) | st.binary(max_size=9).map(bytes.hex), max_size=12)


@given(TEXTS, TEXTS, st.integers(0, 2), st.sampled_from([pa.string(), pa.large_string()]))
def test_equal_texts_have_equal_fingerprints_and_are_the_same(
    texts: list[str | None], known: list[str | None], first: int, kind: Any
) -> None:
    given = pa.array(["before", *texts, *known], kind)[first:]
    others = pa.array([*([None] * (len(given) - len(known))), *known], kind)
    mine, theirs = fingerprints(given), fingerprints(others)
    assert mine is not None
    assert theirs is not None
    pairs = list(zip(given.to_pylist(), others.to_pylist(), strict=True))
    alike = [(one is None) == (other is None) for one, other in pairs]  # a null is never compared with a text

    assert are_same(given, others)[alike].tolist() == [one == other for one, other in itertools.compress(pairs, alike)]
    assert (mine.integers == theirs.integers)[[one == other for one, other in pairs]].all()
    assert (np.array(mine.are_null) == [text is None for text in given.to_pylist()]).all()


@given(st.sets(st.text("ab\0é\uffff\U0010ffff", max_size=20)))
def test_texts_are_in_python_s_order(texts: set[str]) -> None:
    found = ranks(pa.array([None, *texts], pa.string()))
    assert found is not None
    assert found.tolist() == [0, *[sorted(texts).index(text) + 1 for text in texts]]
