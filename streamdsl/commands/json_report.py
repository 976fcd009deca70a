"""What commands print with `--json`: one shape, whatever is reported."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from streamdsl.extras import own_version

State: TypeAlias = Literal["ok", "absent", "wrong"]
_HELP: Final = "as JSON: whether all is sound, and the parts (docs/command-line.md)"


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--json`."""
    parser.add_argument("--json", action="store_true", help=_HELP)


def part(name: str, state: State, **more: Any) -> dict[str, Any]:
    """Return a part of a report: its name, its state, and what else is known of it."""
    return {"name": name, "state": state, **more}


def print_json(parts: Iterable[Mapping[str, Any]]) -> int:
    """Print a report, which is sound unless a part is wrong; return the exit status, 1 if it is not."""
    listed = list(parts)
    is_sound = all(each["state"] != "wrong" for each in listed)
    said = {"sound": is_sound, "streamdsl": own_version(), "parts": listed}
    print(json.dumps(said, indent=2, ensure_ascii=False, default=str))
    return int(not is_sound)
