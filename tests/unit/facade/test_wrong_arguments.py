"""Whatever public methods are called with, what they raise is an error of ours, or what Python says of a signature."""

from __future__ import annotations

import inspect
import math
import traceback
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.errors import StreamDslError
from streamdsl.monitoring.live import Live

ROWS = [(1, 2, {"k": "a", "v": 1}), (3, 5, {"k": "b", "v": 2})]


WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    math.nan,
    math.inf,
    "",
    "nonsense",
    "-1s",
    "1e999s",
    "\ud800",
    b"bytes",
    [],
    [None],
    {},
    {"k": None},
    {1: 2},
    (),
    (1, 2),
    timedelta(seconds=-1),
    timedelta.max,
    np.int64(-5),
    object(),
    object,
    lambda: 1,
    lambda a, b, c, d: a,
    lambda e: None,
    lambda e: e.nope,
    (x for x in range(3)),
    sd.Cti(1),
    sd.count(),
    sd.Clip.FULL,
    ValueError("x"),
]
RIGHT: dict[str, Any] = {"f": lambda e: e.v, "predicate": lambda e: e.v > 1, "where": lambda e: e.v > 1, "key": "k", "on": "k"}


def bounded() -> sd.Stream[Any]:
    return sd.from_rows(ROWS)


SUBJECTS: dict[str, Callable[[], Any]] = {
    "stream": bounded,
    "source": lambda: sd.source("s"),
    "grouped": lambda: bounded().group_by("k"),
    "windowed": lambda: bounded().tumbling_window(10),
    "grouped windows": lambda: bounded().group_by("k").tumbling_window(10),
    "session": lambda: sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open(),
    "streamdsl": lambda: sd,
}
NOT_TRIED = {"describe", "output_cti", "load", "attach", "on_spark"}
"""What other parts of the package call, and what needs more than arguments."""
OF_VALUES = {"cast", "contains", "length", "local_time", "truncate"}
"""Functions of expressions; of plain values they are Python's own, with its errors."""
OF_FILES = {"from_arrow", "from_csv", "from_jsonl", "from_parquet", "checkpoint", "restore"}
MODULE = [name for name in sd.__all__ if inspect.isfunction(getattr(sd, name))]


def methods(subject: str) -> list[str]:
    if subject == "streamdsl":
        return MODULE
    made = type(SUBJECTS[subject]())
    return [
        name for name, value in inspect.getmembers(made, inspect.isfunction) if not name.startswith("_") and name not in NOT_TRIED
    ]


def calls(function: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield wrong arguments: each parameter wrong while the others are plausible, then all of them wrong, and one more."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [each for each in positional if each.default is each.empty]
    right = [RIGHT.get(each.name, "k") for each in required]
    for wrong in WRONG:
        for place in range(len(required)):
            yield (*right[:place], wrong, *right[place + 1 :]), {}
        yield tuple(wrong for _ in required), {}
        yield (*right, wrong), {}
        for each in parameters:
            if each not in required and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                yield tuple(right), {each.name: wrong}
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            yield tuple(right), {"some": wrong}


def is_of_signature(error: BaseException) -> bool:
    """Say whether an error is what Python says of a signature: ours, or that of a function that was given."""
    text = str(error)
    return (
        isinstance(error, TypeError)
        and ("argument" in text)
        and ("positional" in text or "takes no" in text or "keyword" in text)
    )


def outcome(subject: str, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Return what a call raises that is raw; what it gives is used, as far as it can be."""
    made = getattr(SUBJECTS[subject](), name)
    try:
        found = made(*arguments, **named)
        if isinstance(found, sd.Stream):
            found.explain()
            found.run({"s": ROWS}).cht()
        if isinstance(found, Live):
            found.stop()
    except StreamDslError as error:
        return None if "\nHint: " in str(error) else f"no hint: {type(error).__name__}: {str(error)[:150]}"
    except Exception as error:
        if is_of_signature(error):
            return None
        if name in OF_VALUES and isinstance(error, (TypeError, ValueError)):
            return None
        if name in OF_FILES and isinstance(error, (OSError, UnicodeError)):
            return None
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno} {last.name}: {str(error)[:90]}"
    return None


@pytest.mark.parametrize(("subject", "name"), [(each, name) for each in SUBJECTS for name in methods(each)])
def test_wrong_arguments_are_refused_in_our_words(
    subject: str, name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    raw: dict[str, str] = {}
    step = 8 if name == "chart" else 1  # drawing takes Altair long; the seven calls with a wrong value still take turns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for arguments, named in islice(calls(getattr(SUBJECTS[subject](), name)), 0, None, step):
            found = outcome(subject, name, arguments, named)
            if found is not None:
                raw.setdefault(found, f"{[type(each).__name__ for each in arguments]} {list(named)}")
    assert raw == {}
