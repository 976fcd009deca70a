"""Modules that installed distributions provide: one installed for real, and ones that are broken or at odds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.udm.listing import Entry
from streamdsl.udm.repository import Repository

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "tests" / "distributions" / "streamdsl-example-udms"

PROGRAM = """
import json, sys
import streamdsl as sd

assert "streamdsl_example_udms" not in sys.modules
means = sd.udm("geometric_mean", lambda e: e.x)
windows = sd.from_rows([(1, 2, {"x": 2.0}), (2, 3, {"x": 8.0}), (11, 12, {"x": 3.0})]).tumbling_window(10)
print(json.dumps({
    "catalog": [[e.name, e.kind, e.signature, e.parameters, e.origin, e.path] for e in sd.udm.catalog() if "example" in e.origin],
    "means": [row.payload["m"] for row in windows.aggregate(m=means).run().cht().rows],
    "spikes": [row.payload for row in windows.apply(sd.udm.get("spikes", factor=1.5), lambda e: e.x).run().cht().rows],
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example distribution is built and installed, with nothing downloaded."""
    work = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(EXAMPLE, work / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(work / "site"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return work / "site"


def run(program: str, *path: Path) -> Any:
    """Return what a program prints as JSON, run by a Python that sees these folders too."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT]))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_modules_of_an_installed_distribution_are_listed_and_run_by_name(installed: Path) -> None:
    found = run(PROGRAM, installed)
    origin = "streamdsl-example-udms 1.0"
    assert found["catalog"] == [
        ["geometric_mean", "uda", "float -> float", "", origin, "streamdsl_example_udms:GeometricMean"],
        ["spikes", "udo", "float -> float", "factor: float = 2.0", origin, "streamdsl_example_udms:Spikes"],
    ]
    assert found["means"] == pytest.approx([4.0, 3.0])
    assert found["spikes"] == [8.0]


def test_distributions_are_not_loaded_before_one_of_their_names_is_used(installed: Path) -> None:
    program = (
        "import json, sys, streamdsl as sd\n"
        "is_loaded = lambda: 'streamdsl_example_udms' in sys.modules\n"
        "print(json.dumps([is_loaded(), sd.udm.get('median') and is_loaded(), sd.udm.get('spikes') and is_loaded()]))"
    )
    assert run(program, installed) == [False, False, True]


def test_the_names_are_unknown_where_the_distribution_is_not_installed() -> None:
    program = (
        "import json, streamdsl as sd\n"
        "try:\n    sd.udm('geometric_mean')\n"
        "except sd.errors.QueryError as error:\n    print(json.dumps(str(error)))"
    )
    assert run(program).startswith("no module is named 'geometric_mean'")


# Distributions as they lie on the disk.

Provide = Callable[..., Repository]


@pytest.fixture
def provide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Provide:
    """Put distributions on the path, each a name with its entry points and its module's text, and return a new repository."""

    def put(name: str, points: dict[str, str], text: str = "") -> Repository:
        folder = tmp_path / name
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{point} = {value}" for point, value in points.items()]
        (metadata / "entry_points.txt").write_text("\n".join(["[streamdsl.udms]", *lines]))
        (folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        return Repository()

    return put


def module(name: str, factor: int) -> str:
    return (
        "import streamdsl as sd\n\n"
        f"class {name}(sd.UDA[float, float]):\n"
        f'    """{factor} times the sum."""\n\n'
        "    def compute_result(self, payloads):\n"
        f"        return {factor} * sum(payloads)\n"
    )


def refusal(make: Callable[[], object]) -> tuple[str, str | None]:
    with pytest.raises(QueryError) as caught:
        make()
    return str(caught.value).partition("\nHint: ")[0], caught.value.hint


def entries(udm: Repository, name: str) -> list[Entry]:
    return [entry for entry in udm.catalog() if entry.name == name]


@pytest.mark.parametrize(
    ("distribution", "value", "text", "said"),
    [
        ("udms_gone", "udms_gone.nowhere:A", "", "cannot be loaded: ModuleNotFoundError: No module named 'udms_gone.nowhere'"),
        (
            "udms_renamed",
            "udms_renamed:A",
            "B = 1",
            "cannot be loaded: AttributeError: module 'udms_renamed' has no attribute 'A'",
        ),
        ("udms_failing", "udms_failing:A", "1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("udms_garbled", "no entry point", "", "cannot be loaded: AttributeError"),
        ("udms_other", "udms_other:A", "A = 3", "is no module"),
        (
            "udms_abstract",
            "udms_abstract:A",
            "import streamdsl as sd\nA = sd.UDA",
            "is abstract: it does not define compute_result",
        ),
    ],
)
def test_a_broken_module_names_its_distribution_when_it_is_used_and_spoils_no_other(
    provide: Provide, distribution: str, value: str, text: str, said: str
) -> None:
    udm = provide(distribution, {"broken": value}, text)
    message, _ = refusal(lambda: udm("broken", lambda e: e.x))
    assert message.startswith(f"'broken' of {distribution} 1.0 ({value}) {said}")
    (entry,) = entries(udm, "broken")
    assert entry.error is not None
    assert entry.error.startswith(message)
    assert entry.kind == entry.signature == ""
    assert entry.origin == f"{distribution} 1.0"
    assert f"error: {message}" in repr(udm.catalog())
    assert udm.get("median").compute_result([1, 2, 9]) == 2


def test_a_name_of_two_distributions_is_an_error_that_names_both(provide: Provide) -> None:
    provide("udms_first", {"total": "udms_first:Total"}, module("Total", 1))
    udm = provide("udms_second", {"total": "udms_second:Total", "alone": "udms_second:Total"}, module("Total", 2))
    message, hint = refusal(lambda: udm("total", lambda e: e.x))
    assert message == "'total' is provided by udms_first 1.0 (udms_first:Total) and by udms_second 1.0 (udms_second:Total)"
    assert hint == "import one of them, and register it: sd.udm.register('total', ...)"
    assert [entry.origin for entry in entries(udm, "total")] == ["udms_first 1.0", "udms_second 1.0"]
    assert all(message in (entry.error or "") for entry in entries(udm, "total"))
    assert udm.get("alone").compute_result([1.0, 2.0]) == 6.0


def test_a_distribution_does_not_change_what_a_built_in_name_means(provide: Provide) -> None:
    udm = provide("udms_builtin", {"median": "udms_builtin:Median"}, module("Median", 3))
    message, _ = refusal(lambda: udm("median", lambda e: e.x))
    assert message == (
        "'median' is provided by streamdsl (streamdsl.udm.builtin:Median) and by udms_builtin 1.0 (udms_builtin:Median)"
    )


def test_what_the_program_registers_wins(provide: Provide) -> None:
    provide("udms_left", {"it": "udms_left:It"}, module("It", 1))
    udm = provide("udms_right", {"it": "udms_right:It", "median": "udms_right:It"}, module("It", 2))
    by: sd.UDA[float, list[float]] = sd.uda(sorted)
    udm.register("it", by)
    udm.register("median", by)
    assert udm.get("it") is udm.get("median") is by
    assert [entry.origin for entry in entries(udm, "it") + entries(udm, "median")] == ["this program", "this program"]


def test_the_catalog_shows_the_program_first_and_the_built_in_last(provide: Provide) -> None:
    udm = provide("udms_between", {"a": "udms_between:A", "z": "udms_between:A"}, module("A", 4))
    udm.register("m", sd.uda(sorted))
    catalog = udm.catalog()
    assert [entry.name for entry in catalog[:4]] == ["m", "a", "z", "avg"]
    assert repr(catalog[1:2]) == "1 module\n\nudms_between 1.0\n  a  uda  float -> float\n      4 times the sum."
