"""What a physical plan computes more than once: Spark reuses equal exchanges and subqueries, and keeps nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_BRANCH: Final = re.compile(r"(?P<indent>[ :]*)[+:]- (?P<text>.*)")
_CODEGEN: Final = re.compile(r"\*(?:\(\d+\))? ")
_NUMBER: Final = re.compile(r"\w*#\d+L?|\bplan_id=\d+|\*\(\d+\) |\*(?= ?[A-Z])")
_PYTHON: Final = re.compile(r"(?:MapInArrow|FlatMapGroupsInArrow \[[^\]]*\],) (?P<label>[^(]+)\(")
_SOURCE: Final = re.compile(r"a row of the source '(?P<name>.*?)' is refused: ")
"""What the check of a frame's times says is in each plan that reads the frame."""
_REUSED: Final = ("Exchange", "BroadcastExchange", "Subquery")
_KEPT: Final = "InMemoryTableScan"


@dataclass(slots=True)
class _Part:
    """A node of a physical plan: its text, and the nodes below it."""

    text: str
    below: list[_Part] = field(default_factory=list)

    def walk(self, seen: set[str]) -> Iterator[_Part]:
        """Yield all that runs."""
        if self.text.startswith(_KEPT):
            return
        if self.text.startswith(_REUSED):
            same = _unnumbered("\n".join(self._lines()))
            if same in seen:
                return
            seen.add(same)
        yield self
        for part in self.below:
            yield from part.walk(seen)

    @property
    def is_kept(self) -> bool:
        """Whether it is made of nothing but what is persisted."""
        return self.text.startswith(_KEPT) or (bool(self.below) and all(part.is_kept for part in self.below))

    def _lines(self) -> Iterator[str]:
        yield self.text
        for part in self.below:
            yield "("
            yield from part._lines()
            yield ")"


def computed_often(physical_plan: str, labels: Collection[str]) -> dict[str, int]:
    """Return how often operators that run in Python are computed, and frames of sources read, where that is more than once.

    >>> plan = '''Union
    ... :- MapInArrow select_1(le#1L, p#2)#3, [le#4L, p#5], false
    ... :  +- FileScan parquet [le#1L,p#2]
    ... +- MapInArrow select_1(le#6L, p#7)#8, [le#9L, p#10], false
    ...    +- FileScan parquet [le#6L,p#7]'''
    >>> computed_often(plan, ["select_1"])
    {'select_1': 2}
    """
    stages: Counter[tuple[str, str]] = Counter()
    for part in _parsed(physical_plan).walk(set()):
        if (python := _PYTHON.match(part.text)) is not None:
            stages[python["label"], _unnumbered(part.text)] += 1
        elif not part.is_kept:
            stages.update((f"source:{name}", "") for name in {found["name"] for found in _SOURCE.finditer(part.text)})
    return {label: n for (label, _), n in sorted(stages.items(), key=lambda each: each[1]) if n > 1 and label in labels}


def repetitions(often: Mapping[str, int]) -> dict[str, str]:
    """Return what the tree of a plan says of each."""
    return {label: f"{'read' if _source_of(label) else 'computed'} {n} times" for label, n in often.items()}


def advice(often: Mapping[str, int]) -> list[str]:
    """Return a line with the remedy for each, but for sources that are read with the operators that read them.

    >>> advice({"source:bids": 2})
    ['Hint: source:bids is read 2 times: bids.persist() keeps the frame, which pays if it costs more to compute than to keep']
    """
    most = max((n for label, n in often.items() if not _source_of(label)), default=0)
    return [f"Hint: {_remedy(label, n)}" for label, n in often.items() if n > most or not _source_of(label)]


def _source_of(label: str) -> str:
    return label.removeprefix("source:") if label.startswith("source:") else ""


def _remedy(label: str, n: int) -> str:
    if name := _source_of(label):
        return f"{label} is read {n} times: {name}.persist() keeps the frame, which pays if it costs more to compute than to keep"
    return (
        f"{label} is computed {n} times: make a query of it, persist what this gives, part.on_spark(spark).batch(...).persist(), "
        "and give it to the rest as the frame of a source"
    )


def _unnumbered(text: str) -> str:
    """Return a plan's text with its columns numbered in order of appearance, so that equal plans are equal texts."""
    known: dict[str, str] = {}
    return _NUMBER.sub(lambda found: known.setdefault(found[0], f"#{len(known)}") if "#" in found[0] else "", text)


def _parsed(physical_plan: str) -> _Part:
    """Return the tree that a physical plan's text shows; a line that is no branch goes on with the text of the one before."""
    root = _Part("")
    path = [(-1, root)]
    for line in physical_plan.splitlines():
        branch = _BRANCH.fullmatch(line)
        if branch is None:
            path[-1][1].text += f"\n{line}"
            continue
        depth = len(branch["indent"])
        while path[-1][0] >= depth:
            path.pop()
        part = _Part(_CODEGEN.sub("", branch["text"], count=1) if branch["text"].startswith("*") else branch["text"])
        path[-1][1].below.append(part)
        path.append((depth, part))
    return root
