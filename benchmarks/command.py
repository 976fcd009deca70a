"""The command line of a study: what it shows, which of its parts are run, how large they are, and where its figures go."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import stamp


class Study:
    """A study as the command line asks for it: `parts` are the titles that were chosen, and each option is an attribute.

    A word chooses the part with this title, else those whose titles have it; an option is a number, or a switch if it is False by
    default. The rows that are told go to `--json PATH`: `{"study": ..., "stamp": ..., "rows": [{"title": ..., figure: number}]}`.

    >>> study = Study("What joins cost.", ["by a key", "by a band"], ["band", "--rounds", "2"], rounds=3)
    >>> study.parts, study.rounds
    (['by a band'], 2)
    """

    def __init__(self, doc: str | None, parts: Iterable[str] = (), arguments: list[str] | None = None, **options: Any) -> None:
        about, _, more = (doc or "").partition("\n\n")
        name = getattr(sys.modules["__main__"].__spec__, "name", "").removesuffix(".__main__")
        raw = argparse.RawDescriptionHelpFormatter
        parser = argparse.ArgumentParser(prog=f"python -m {name}", description=about, epilog=more, formatter_class=raw)
        titles = list(parts)
        if titles:
            shown = ", ".join(titles).replace("%", "%%")
            parser.add_argument("words", nargs="*", metavar="WORD", help=f"run what has one of them in its title: {shown}")
        for option, default in options.items():
            flag = f"--{option.replace('_', '-')}"
            if default is False:
                parser.add_argument(flag, action="store_true")
            else:
                kind = Path if default is None else type(default)
                parser.add_argument(flag, type=kind, default=default, help="%(default)s" if default is not None else None)
        parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures there too")
        asked = vars(parser.parse_args(arguments))
        words = asked.pop("words", [])
        exact = [word for word in words if word in titles]  # q1 is not q11
        parts = [word for word in words if word not in exact]
        self.parts = [each for each in titles if not words or each in exact or any(part in each for part in parts)]
        if unknown := [word for word in parts if not any(word in title for title in titles)]:
            parser.error(f"no title has {', '.join(unknown)}; there are: {', '.join(titles)}")
        self._name, self._path, self._rows, self._stamp = name, asked.pop("json"), list[dict[str, Any]](), stamp()
        self.options: dict[str, Any] = asked

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["options"][name]
        except KeyError:
            raise AttributeError(name) from None

    def row(self, title: str, text: str, figures: Mapping[str, Any]) -> None:
        """Print a row as a text, and write its figures, with those before, to the file that was asked for."""
        print(text, flush=True)
        self._rows.append({"title": title, **figures})
        if self._path is not None:
            told = {"study": self._name, "stamp": self._stamp, "rows": self._rows}
            self._path.write_text(json.dumps(told, indent=1) + "\n")
