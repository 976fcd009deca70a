"""One engine in a process of its own; a line of JSON for each run, in and out."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys


def main(name: str) -> None:
    """Answer `[size, slide, tuples]` by the list of outputs; what the engine prints goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, _, function = name.partition(":")
    run = getattr(importlib.import_module(f"benchmarks.engines.{module}"), function)
    for line in sys.stdin:
        size, slide, tuples = json.loads(line)
        print(json.dumps([list(map(int, output)) for output in run(size, slide, tuples)]), file=answers, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines.worker", description=__doc__)
    parser.add_argument("name", metavar="MODULE:FUNCTION")
    main(parser.parse_args().name)
