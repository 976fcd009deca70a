"""Every operator of the engine can be saved and restored, as data that nobody has to trust."""

from __future__ import annotations

import inspect
import os
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.engine import operators as package
from streamdsl.engine.batch import EMPTY
from streamdsl.engine.lower import OPERATORS, named_operator
from streamdsl.engine.operator import Operator
from streamdsl.engine.starting import restored
from streamdsl.errors import CheckpointError
from tests.laws.harness import pushes_for
from tests.laws.operators import Variant, operators
from tests.laws.scenarios import scenario

VARIANTS = [(name, variant) for name, variants in operators().items() for variant in variants[:: max(1, len(variants) // 2)]]


def concrete(cls: Any) -> Iterator[Any]:
    """Yield the operators that run: those that leave no method open, and those that the tables name."""
    for each in cls.__subclasses__():
        yield from concrete(each)
        if each.__module__.startswith("streamdsl.") and not inspect.isabstract(each):
            yield each


def begun(variant: Variant) -> Any:
    """Return a session in the middle of a random stream."""
    session = variant.query().open()
    for source, events in pushes_for(variant.query(), scenario(Random(7), variant.inputs, unending=False, max_size=12)):
        session.push(list(events), source=source)
    return session


def restored_operators() -> set[type[Operator]]:
    found = set()
    for _, variant in VARIANTS:
        saved = begun(variant).snapshot()
        again = restored(variant.query().plan(), None, saved)
        assert again.snapshot() == saved, variant.name
        found |= {type(operator) for operator in again._graph.operators}
    return found


def test_every_operator_is_saved_and_restored_without_trust() -> None:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    found = restored_operators()
    running = {cls for cls in concrete(Operator) if not any(issubclass(other, cls) and other is not cls for other in found)}
    assert sorted(cls.__name__ for cls in running - found) == []
    assert {cls for cls in map(named_operator, OPERATORS) if not inspect.isabstract(cls)} <= found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each is restored in a process of its own")
def test_every_operator_is_restored_in_a_process_that_has_run_nothing(tmp_path: Path) -> None:
    every = [(name, begun(variants[0])) for name, variants in operators().items()]
    by_operators = {(name, *map(type, session._graph.operators)): (name, 0, session.snapshot()) for name, session in every}
    given = list(by_operators.values())
    path, root = tmp_path / "checkpoints", Path(__file__).parents[2]
    path.write_bytes(pickle.dumps(given))
    command = [sys.executable, "-m", "tests.architecture.afresh", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert (done.stdout.strip(), done.stderr) == ("", "")


class Forgetful(Operator):
    """An operator whose state is no data."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.held = (n for n in range(3))

    def change(self, batches: Any, ctis: list[int]) -> Any:
        return EMPTY


def test_an_operator_with_state_that_is_no_data_is_named_with_the_attribute() -> None:
    session = sd.source("s").where(lambda e: e.v > 1).open()
    session._graph.stages[1].operator = Forgetful("forgetful_1")
    with pytest.raises(CheckpointError, match="forgetful_1 cannot be saved, at held: it holds a builtins:generator"):
        session.snapshot()
