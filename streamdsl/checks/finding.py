"""Findings: the results of checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at an operator of a plan, such as state that is never freed, and the remedy.

    A *warning* is a problem for any data; a *note* depends on the data, or costs time only. `operator` is the label in
    `explain(engine="reference")`, which shows the plan as written; `file` and `line` are the call that makes the operator.

    >>> print(Finding("join_1", "warning", "keeps rows for ever", "end them: clip_duration(d)", "query.py", 7))
    query.py:7: warning: join_1 keeps rows for ever
      Remedy: end them: clip_duration(d)
    """

    operator: str
    level: Level
    what: str
    remedy: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}:{self.line}: "
        return f"{place}{self.level}: {self.operator} {self.what}\n  Remedy: {self.remedy}"
