"""Laws of a module in a query: the local engine and Spark agree with the denotation."""

from __future__ import annotations

from typing import Final

from streamdsl.errors import EventError
from streamdsl.temporal import CHT, MIN_TIME, Cti, sync_time
from streamdsl.testing.laws.applicability import has_spark, is_deterministic
from streamdsl.testing.laws.law import on_streams
from streamdsl.testing.laws.trials import MODULE_ERRORS, StreamTrial
from streamdsl.testing.live_window import deep_copy

_HINT: Final = (
    "the engine computes anew what a change may have changed, in any order and any number of times: a result may depend on "
    "nothing but what the module is given"
)


@on_streams(is_deterministic, hint=_HINT, share=1.5)
def cti_progress(trial: StreamTrial) -> None:
    """No output breaks an earlier output CTI, whatever the order of arrival."""
    cti = MIN_TIME
    try:
        output = trial.output()
    except MODULE_ERRORS:  # the next law tells of it
        return
    for event in output:
        if sync_time(event) < cti:
            raise trial.breach(f"the output {event} breaks the output's own {Cti(cti)}")
        cti = max(cti, event.time) if isinstance(event, Cti) else cti


@on_streams(is_deterministic, hint=_HINT, share=1.5)
def arrival_order(trial: StreamTrial) -> None:
    """Whatever the order of arrival, the output means what the definition says."""
    try:
        found = CHT.from_events(trial.output())
    except EventError as error:
        raise trial.breach(f"the output is malformed: {str(error).splitlines()[0]}") from error
    trial.expect("in this order of arrival, the output means something else", found, trial.expected())


@on_streams(has_spark, is_deterministic, hint="on Spark a module runs in other processes; " + _HINT, share=0.16)
def same_on_spark(trial: StreamTrial) -> None:
    """On Spark the result is the same."""
    found = trial.query().run({"events": deep_copy(trial.events)}, engine="spark").cht()
    trial.expect("on Spark it gives another result", found, trial.expected())


LAWS = (cti_progress, arrival_order, same_on_spark)
