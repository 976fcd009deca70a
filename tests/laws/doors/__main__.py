"""The coverage table of the law, and the law itself, all failures told: `python -m tests.laws.doors [--run [n [row ...]]]`.

With `--chance 0` the cases are those of the tests, with another number others, the same each time; without it they are new.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections import Counter, defaultdict
from itertools import combinations

from tests.laws.doors.case import DIMENSIONS, ROWS, legal
from tests.laws.doors.covering import legal_pairs, pairs_of
from tests.laws.doors.law import law
from tests.laws.doors.sources import DOORS


def table(rows: list[dict[str, str]]) -> str:
    """Return for each two dimensions how often each pair of their values is there; `-` for what cannot go together."""
    counted = Counter(pair for row in rows for pair in pairs_of(row))
    possible = legal_pairs(DIMENSIONS, legal)
    lines = [f"{len(rows)} rows, {len(possible)} pairs that may go together, {len(possible - counted.keys())} of them empty"]
    for a, b in combinations(DIMENSIONS, 2):
        lines += ["", f"{a} x {b}", *_grid(a, b, {pair: counted[pair] for pair in possible})]
    return "\n".join(lines)


def _grid(a: str, b: str, counted: dict[frozenset[tuple[str, str]], int]) -> list[str]:
    wide = max(map(len, DIMENSIONS[a])) + 2
    lines = [" " * wide + " ".join(f"{value[:8]:>8}" for value in DIMENSIONS[b])]
    for value in DIMENSIONS[a]:
        cells = [counted.get(frozenset([(a, value), (b, other)]), "-") for other in DIMENSIONS[b]]
        lines.append(f"{value:<{wide}}" + " ".join(f"{cell:>8}" for cell in cells))
    return lines


def report(chosen: list[int], examples: int, chance: int) -> int:
    """Run rows, each with so many examples, and tell every kind of failure once, with its smallest example."""
    print(f"{len(chosen)} rows with {examples} examples each, --chance {chance}", flush=True)
    found: dict[str, list[int]] = defaultdict(list)
    shown: dict[str, str] = {}
    for at, number in enumerate(chosen):
        if at and at % 50 == 0:
            print(f"{at} rows tried, {at * examples} examples", flush=True)
        try:
            law(number, examples, chance)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            kind = f"{type(error).__name__}: {str(error).splitlines()[0][:110] if str(error) else ''}"
            found[kind].append(number)
            notes = "\n".join(getattr(error, "__notes__", []))
            text = f"{error}\n{notes}"
            print(f"{number}: {kind}", flush=True)
            if kind not in shown or len(text) < len(shown[kind]):
                shown[kind] = text
    for kind, rows in sorted(found.items(), key=lambda each: -len(each[1])):
        print(f"==== {len(rows)} x {kind}\n  rows {rows[:12]}\n{shown[kind]}\n")
    print(f"{sum(map(len, found.values()))} of {len(chosen)} rows fail")
    return 1 if found else 0


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.laws.doors")
    parser.add_argument("--run", nargs="*", type=int, metavar="n", help="how many examples, and of which rows")
    parser.add_argument("--of", metavar="NAME", help="the rows of this source alone, or of this format of files")
    parser.add_argument("--chance", type=int, default=int.from_bytes(os.urandom(3)))
    said = parser.parse_args()
    if said.run is None:
        print(table(ROWS))
        return 0
    examples, *chosen = said.run or [2]
    door = DOORS.get(said.of, said.of)
    named = [number for number, row in enumerate(ROWS) if door in (None, row["source"].partition(", ")[0])]
    if not chosen and not named:
        parser.error(f"no row has the source {said.of!r}; there are {', '.join([*DOORS, *DIMENSIONS['source']])}")
    return report(chosen or named, examples, said.chance)


if __name__ == "__main__":
    raise SystemExit(main())
