"""What the tests of state share: a value written and read again."""

from __future__ import annotations

from typing import Any

import streamdsl as sd
from streamdsl.engine.state.classes import Classes
from streamdsl.engine.state.external import ExternalReferences
from streamdsl.engine.state.parts import Parts
from streamdsl.engine.state.reader import Reader
from streamdsl.engine.state.writer import Writer


def again(value: Any, trust: bool = False, known: tuple[type, ...] = ()) -> Any:
    """Return what reading gives of a value that was written."""
    outside, classes = ExternalReferences(Parts(sd.source("s").plan()), {}), Classes(known, anywhere=trust)
    data = b"".join(Writer(outside, classes).section({"value": value}))
    return Reader(data, outside, classes, trust).attributes()["value"]
