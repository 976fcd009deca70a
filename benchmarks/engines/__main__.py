"""`python -m benchmarks.engines [ENGINE ...]`: infer the settings of today's engines, with the inputs that tell them apart."""

from __future__ import annotations

import argparse

from benchmarks.engines import engines
from benchmarks.engines.engine import Engine
from benchmarks.environments import AbsentError
from streamdsl.secret import Inferred, infer


def main(arguments: list[str] | None = None) -> None:
    """Ask each engine, and print what explains it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description="the settings of SECRET of today's engines")
    parser.add_argument("engines", nargs="*", help=f"all, or some of: {', '.join(engines())}")
    named = parser.parse_args(arguments).engines
    if unknown := set(named) - engines().keys():
        parser.error(f"there is no engine {', '.join(sorted(unknown))}; there are {', '.join(engines())}")
    for name in named or engines():
        try:
            print(f"\n{name}: {shown(asked(engines()[name]))}", flush=True)
        except AbsentError as error:
            print(f"\n{name}: not run: {error}", flush=True)


def asked(engine: Engine) -> Inferred:
    """Return the settings that explain an engine."""
    running = engine.start()
    try:
        return infer(running, engine.windows, name=engine.title)
    finally:
        running.stop()


def shown(found: Inferred) -> str:
    """Return what was found, and the inputs that ruled other settings out."""
    lines = [repr(found)]
    for each in found.witnesses if found else []:
        times = " ".join(f"{value}@{t_app}#{bid}" for value, t_app, _, bid in each.tuples)
        lines.append(f"  size {each.size} slide {each.slide}: {times} -> {each.outputs}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
