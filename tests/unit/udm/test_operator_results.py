"""What an operator returns: an iterable of results. One payload by itself is refused, though Python could iterate over some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import pytest

import streamdsl as sd
from streamdsl.errors import UserCodeError
from streamdsl.temporal import Insert


class Pair(NamedTuple):
    first: float
    last: float


class Returns(sd.UDO[Any, Any]):
    """It returns the same for every window."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def compute_result(self, payloads: Sequence[Any]) -> Any:
        return self.found


class IncrementalReturns(sd.IncrementalUDO[Any, int, Any]):
    """It returns the same for every window."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, payload: Any) -> int:
        return state + 1

    def compute_result(self, state: int) -> Any:
        return self.found


def results(module: Any, engine: Any) -> list[Any]:
    stream = sd.from_events([Insert("a", 1, 2, 7)]).tumbling_window(10).apply(module)
    return [row.payload for row in stream.run(engine=engine).cht()]


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("kind", [Returns, IncrementalReturns])
@pytest.mark.parametrize(
    "found",
    [{"v": 1}, "text", b"bytes", Pair(1.0, 2.0), None, 7, pd.DataFrame({"v": [1, 2]})],
    ids=lambda found: type(found).__name__,
)
def test_one_payload_by_itself_is_refused(found: Any, kind: Any, engine: Any) -> None:
    with pytest.raises(UserCodeError, match=r"returned a value of type \w+; an operator returns.*\n.*window \[0, 10\)"):
        results(kind(found), engine)


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("kind", [Returns, IncrementalReturns])
@pytest.mark.parametrize("found", [(2, 1), [2, 1], {2, 1}, pd.Series([2, 1])], ids=lambda found: type(found).__name__)
def test_results_come_in_any_iterable(found: Any, kind: Any, engine: Any) -> None:
    assert sorted(results(kind(found), engine)) == [1, 2]
