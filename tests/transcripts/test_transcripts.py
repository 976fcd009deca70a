"""Every transcript, on the engine push by push, and as a whole against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
import udm_examples
from streamdsl.denote import denote
from streamdsl.temporal import CHT, MISSING, Cti, Event, Retract
from streamdsl.testing import assert_cht_equal
from tests.laws import modules
from tests.transcripts.transcript import Transcript, load, texts, transcripts


def query(transcript: Transcript) -> sd.Stream[Any]:
    sources = {"s": sd.source("s"), "t": sd.source("t")}
    found = eval(transcript.head["query"], {"sd": sd, **vars(modules), **vars(udm_examples), **sources})
    assert isinstance(found, sd.Stream)
    return found


def check(transcript: Transcript) -> None:
    """Raise `AssertionError` unless the engine says line for line what the transcript says, and the whole means the same."""
    session = query(transcript).open(emit=transcript.head["emit"])  # type: ignore[arg-type]
    inputs: dict[str, list[Event[Any]]] = {"s": [], "t": []}
    outputs: list[Event[Any]] = []
    for step in transcript.steps:
        pushed = transcript.events("in", step.pushed) if step.source != "close" else []
        out = session.close() if step.source == "close" else session.push(pushed, source=step.source)
        inputs.setdefault(step.source, []).extend(pushed)
        outputs += out
        assert list(map(shown, out)) == list(map(shown, transcript.events("out", step.out))), (
            f"after {step.source}> {step.pushed}"
        )
    chts = {name: CHT.from_events(events) for name, events in inputs.items()}
    assert_cht_equal(CHT.from_events(outputs), denote(query(transcript).plan(), chts))


def shown(event: Event[Any]) -> tuple[Any, ...]:
    """Return what a transcript says of an event: all but its id, and the payload of a retraction."""
    if isinstance(event, Cti):
        return ("cti", event.time)
    if isinstance(event, Retract):
        return ("retract", event.le, event.re, event.re_new)
    return ("insert", event.le, event.re, event.payload)


@pytest.mark.parametrize("name", texts())
def test_transcript(name: str) -> None:
    check(transcripts()[name])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("insert w0.1 0 10 - 2", "insert w0.1 0 10 - 3"),
        ("retract w0 0 10 0", "retract w0 0 10 5"),
        ("insert w10 10 20 - 1\n", ""),
        ("cti - 30\ncti - 30", "cti - 30\ncti - 20"),
        ("retract b 8 25 15", "retract b 8 25 15\ncti - 11"),
        ("insert b 8 25", "insert b 8 9"),
    ],
)
def test_a_transcript_that_says_something_else_fails(tmp_path: Path, right: str, wrong: str) -> None:
    text = (Path(__file__).parent / "tumbling_count.txt").read_text()
    assert right in text
    (tmp_path / "wrong.txt").write_text(text.replace(right, wrong, 1))
    with pytest.raises(AssertionError):
        check(load(tmp_path / "wrong.txt"))


@pytest.mark.parametrize("text", ["title: no query\nin: v\nout: v\n\n> cti - 3", "title: x\nquery: s\nin: v\nout: v\n\ncti - 3"])
def test_a_transcript_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(ValueError, match=r"bad\.txt"):
        load(tmp_path / "bad.txt")


def test_sessions_end_where_the_transcript_closes_them() -> None:
    found = transcripts()
    closed = [name for name, text in texts().items() if found[name].steps[-1].source == "close" or "cti - inf" in text]
    assert closed == list(found)


def test_missing_payloads_are_allowed_in_retractions_only() -> None:
    assert shown(Retract("a", 1, 5, 3, MISSING)) == shown(Retract("b", 1, 5, 3, "x"))
