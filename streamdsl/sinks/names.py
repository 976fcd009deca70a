"""Column names for fields whose names a database cannot hold, by a reversible encoding."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from typing import Final

LONGEST: Final = 63
"""The length in bytes to which PostgreSQL truncates names."""
_SYSTEM: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})
_ALWAYS: Final = re.compile("[~%\0]")
_DIGEST: Final = 15


def column_of(field: str, taken: Collection[str] = ()) -> str:
    """Return the name of a field's column: its own, if databases can hold it beside the columns that are there already.

    What they cannot hold is written as `~` and the two digits of each byte in base 16: `~`, `%` and NUL; if the name is taken
    (in whatever case), or PostgreSQL's own, its capitals too, or its first letter if it has none. The empty name is `~`. A name
    of more than 63 bytes ends after 46 with `~~` and a digest. `field_of` reads all but the last.

    >>> column_of("fare"), column_of("100%"), column_of(""), column_of("ctid"), column_of("V", ["id", "v"])
    ('fare', '100~25', '~', '~63tid', '~56')
    """
    used = {name.lower() for name in taken} | _SYSTEM
    plain = _ALWAYS.sub(_written, field) or "~"
    lower = re.sub("[A-Z]", _written, plain) if re.search("[A-Z]", plain) else re.sub("^[^~]", _written, plain)
    found = (_shortened(name, field) for name in (plain, lower))
    return next((name for name in found if name.lower() not in used), _digested(plain, field))


def distinct_columns(fields: Sequence[str]) -> list[str]:
    """Return columns of fields that formats of files accept: not empty, without NUL, and different by more than case.

    >>> distinct_columns(["", "v", "a b", "V", "n\\0"])
    ['~', 'v', 'a b', '~56', 'n~00']
    """
    names: list[str] = []
    for field in fields:
        others = {each.lower() for each in names}
        names.append(column_of(field, names) if field == "" or "\0" in field or field.lower() in others else field)
    return names


def field_of(column: str) -> str:
    """Return the field of a column, whose name was not too long.

    >>> field_of("100~25"), field_of("~"), field_of("~63tid")
    ('100%', '', 'ctid')
    """
    return "" if column == "~" else re.sub("(~[0-9a-f]{2})+", _read, column)


def _written(match: re.Match[str]) -> str:
    return "".join(f"~{byte:02x}" for byte in match[0].encode())


def _read(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("~", "")).decode()


def _shortened(name: str, field: str) -> str:
    return name if len(name.encode()) <= LONGEST else _digested(name, field)


def _digested(name: str, field: str) -> str:
    begin = name.encode()[: LONGEST - _DIGEST - 2].decode(errors="ignore")
    return f"{begin}~~{hashlib.sha256(field.encode()).hexdigest()[:_DIGEST]}"
