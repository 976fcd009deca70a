"""The debugger of event flows: where an answer comes from, what an event has changed, and why an answer is missing.

`query.trace(inputs)` records a run, `session.trace()` follows a live one. Both give an `EventTrace` (docs/debugger.md).
"""

from __future__ import annotations

from streamdsl.debugger.absence import Remedy, WhyNot
from streamdsl.debugger.answers import Cause, Effects, InputCause, ModuleCall, OperatorEffect, Why
from streamdsl.debugger.event_trace import Arrival, EventTrace, load
from streamdsl.debugger.pushes import Push, Recording

__all__ = [
    "Arrival",
    "Cause",
    "Effects",
    "EventTrace",
    "InputCause",
    "ModuleCall",
    "OperatorEffect",
    "Push",
    "Recording",
    "Remedy",
    "Why",
    "WhyNot",
    "load",
]
