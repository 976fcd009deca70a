"""`python -m benchmarks.engines.record [ENGINE ...]`: run engines, and record their answers as the witnesses of their profiles.

`pytest tests/witnesses` holds the profiles to them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from benchmarks.engines import engines
from benchmarks.engines.engine import Engine
from benchmarks.engines.inputs import Input, inputs
from benchmarks.environments import ROOT, AbsentError

FOLDER: Final = ROOT / "tests" / "witnesses"


def main(arguments: list[str] | None = None) -> None:
    """Ask each engine that has a profile, and write its answers to a file of its own."""
    profiled = [name for name, engine in engines().items() if engine.profile]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines.record", description="what today's engines answer")
    parser.add_argument("engines", nargs="*", choices=[*profiled, []], help="all, or some of these")
    for name in parser.parse_args(arguments).engines or profiled:
        try:
            found = recorded(engines()[name])
        except AbsentError as error:
            print(f"{name}: not run: {error}", flush=True)
        else:
            write(FOLDER / f"{name}.json", found)
            print(f"{name}: {len(found['witnesses'])} witnesses, {len(found['beyond'])} beyond the model", flush=True)


def recorded(engine: Engine) -> dict[str, Any]:
    """Return an engine's answers, those beyond the model apart."""
    witnesses, beyond = list[Any](), list[Any]()
    running = engine.start()
    try:
        for each in inputs(engine):
            answer = witness(each, running(each.size, each.slide, each.tuples))
            (beyond if (each.late or each.long) and engine.late == "beyond the model" else witnesses).append(answer)
    finally:
        running.stop()
    head = {"engine": engine.title, "version": engine.version, "profile": engine.profile, "ended": engine.ended}
    return {**head, "late": engine.late, "witnesses": witnesses, "beyond": beyond}


def witness(given: Input, outputs: list[list[int]]) -> dict[str, Any]:
    """Return an input and the answer to it; the values of a report are in order, whichever they came in."""
    about, size, slide, tuples = given[:4]
    return {"about": about, "size": size, "slide": slide, "tuples": tuples, "outputs": [sorted(values) for values in outputs]}


def write(path: Path, found: dict[str, Any]) -> None:
    """Write a file that has each witness in a line."""
    path.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {_shown(value)}" for name, value in found.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _shown(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[" + ",".join(f"\n  {json.dumps(each)}" for each in value) + "]"


if __name__ == "__main__":
    main()
