"""Physical streams as text tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from streamdsl.errors import EventError, SchemaError
from streamdsl.temporal import INFINITY, MISSING, Cti, Event, Insert, Record, Retract

_FIXED = ("kind", "id", "le", "re", "re_new")
_CELL = re.compile(r"""'[^']*'|"[^"]*"|\S+""")
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False}


def events(table: str, payload: Callable[..., Any] | None = None) -> list[Event[Any]]:
    """Return the physical events of a text table, one a line, in order of arrival.

    The header is `kind id le re re_new` and the payload's fields. Kinds are `insert`, `retract` and `cti` (its time stands
    under `le`); `inf` is INFINITY, `-` is nothing (in an insertion None), cells at the end of a line may be left out, `#` begins
    a comment. Values are read as int, float, `true`, `false`, `none`, else text; quotes make text of anything. The payload is
    a `Record`, the bare value if the only field is `value`, or `payload(**fields)`.

    Raises `SchemaError` for a bad header or line.

    >>> for event in events('''
    ...     kind     id  le  re   re_new  v
    ...     insert   a   1   inf  -       7
    ...     retract  a   1   inf  5
    ...     cti      -   9
    ... '''):
    ...     print(event)
    Insert(id='a', le=1, re=INFINITY, payload=Record(v=7))
    Retract(id='a', le=1, re=INFINITY, re_new=5, payload=...)
    Cti(time=9)
    """
    lines = [cells for line in table.splitlines() if (cells := _cells(line))]
    if not lines:
        return []
    header, *rows = lines
    fields = header[len(_FIXED) :]
    if tuple(header[: len(_FIXED)]) != _FIXED or len(set(fields)) < len(fields):
        raise SchemaError(
            f"the table's header is {' '.join(header)!r}",
            hint=f"it begins with {' '.join(_FIXED)!r}, then names each payload field once",
        )
    return [_event(row, fields, payload) for row in rows]


def _cells(line: str) -> list[str]:
    cells = _CELL.findall(line)
    comment = next((i for i, cell in enumerate(cells) if cell.startswith("#")), len(cells))
    return cells[:comment]


def _event(row: list[str], fields: Sequence[str], payload: Callable[..., Any] | None) -> Event[Any]:
    if len(row) > len(_FIXED) + len(fields):
        raise SchemaError(f"the line {' '.join(row)!r} has more cells than the header")
    cells = row + ["-"] * (len(_FIXED) + len(fields) - len(row))
    kind, name = cells[0].lower(), _value(cells[1])
    if kind == "cti":
        return Cti(_time(row, cells[2]))
    if kind == "insert":
        return Insert(name, _time(row, cells[2]), _time(row, cells[3]), _payload(cells, fields, payload))
    if kind == "retract":
        body = MISSING if set(cells[len(_FIXED) :]) <= {"-"} else _payload(cells, fields, payload)
        return Retract(name, _time(row, cells[2]), _time(row, cells[3]), _time(row, cells[4]), body)
    raise SchemaError(f"the line {' '.join(row)!r} begins with no kind of event", hint="the kinds are insert, retract and cti")


def _payload(cells: Sequence[str], fields: Sequence[str], payload: Callable[..., Any] | None) -> Any:
    values = dict(zip(fields, map(_value, cells[len(_FIXED) :]), strict=True))
    if payload is not None:
        return payload(**values)
    return values["value"] if list(values) == ["value"] else Record(values)


def _time(row: Sequence[str], cell: str) -> int:
    try:
        return INFINITY if cell == "inf" else int(cell)
    except ValueError:
        raise EventError(" ".join(row), f"{cell!r} is not a time", hint="times are int ticks, or inf") from None


def _value(cell: str) -> Any:
    if cell == "-":
        return None
    if cell[0] in "'\"" and cell[-1] == cell[0] and len(cell) > 1:
        return cell[1:-1]
    if cell.lower() in _WORDS:
        return _WORDS[cell.lower()]
    for read in (int, float):
        try:
            return read(cell)
        except ValueError:
            pass
    return cell
