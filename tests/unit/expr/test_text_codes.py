"""Texts are in order without being made."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.io.arrow_ranks import ranks


@given(st.sets(st.text("ab\0é\uffff\U0010ffff", max_size=20)))
def test_texts_are_in_python_s_order(texts: set[str]) -> None:
    found = ranks(pa.array([None, *texts], pa.string()))
    assert found is not None
    assert found.tolist() == [0, *[sorted(texts).index(text) + 1 for text in texts]]
