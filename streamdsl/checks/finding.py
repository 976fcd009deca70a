"""What a check says of an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an operator holds back for ever, or what else is wrong with it, and the remedy.

    A *warning* is about what the query itself makes; a *note* about what depends on the data, or costs time only. `operator` is
    the label in `explain(engine="reference")`: of the plan as written. `file` and `line` are where the query makes the operator.

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
