"""`streamdsl check`: what is wrong with queries before they run."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from streamdsl.commands.json_report import add_json_option, part, print_json
from streamdsl.errors import StreamDslError
from streamdsl.naming import named_query

if TYPE_CHECKING:
    from streamdsl.checks import Finding


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `check`."""
    text = "a query, by its name in a module that can be imported"
    parser.add_argument("queries", nargs="+", metavar="module:query", help=text)
    add_json_option(parser)


def check_named(options: argparse.Namespace) -> int:
    """Print the findings for queries; return 1 if there is a warning, 2 if there is no such query, else 0."""
    from streamdsl.checks import check

    status = 0
    found: list[tuple[str, Finding]] = []
    for target in options.queries:
        try:
            findings = check(named_query(target, "check"))
        except StreamDslError as error:
            print(error, file=sys.stderr)
            status = 2
            continue
        found += [(target, each) for each in findings]
        if not options.json:
            _print(target, findings)
    if options.json and not status:
        print_json(_part(target, each) for target, each in found)
    return max(status, int(any(each.level == "warning" for _, each in found)))


def _part(target: str, found: Finding) -> dict[str, object]:
    where = {"query": target, "file": found.file, "line": found.line}
    said = {"level": found.level, "what": found.what, "remedy": found.remedy}
    return part(found.operator, "wrong" if found.level == "warning" else "ok", **said, **where)


def _print(target: str, findings: list[Finding]) -> None:
    warnings = sum(each.level == "warning" for each in findings)
    print(*findings, f"{target}: {_count(warnings, 'warning')}, {_count(len(findings) - warnings, 'note')}", sep="\n")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
