"""`streamdsl doctor` in environments that are sound, incomplete and broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from streamdsl.cli import main
from streamdsl.installation import FOR_ITS_MAKERS, READ_NOT_IMPORTED, extras, java, requirements

ROOT: Final = Path(__file__).parents[3]
OWN: Final = """Metadata-Version: 2.1
Name: streamdsl
Version: 9.8.7
Requires-Python: >=3.11
Requires-Dist: numpy>=2.0
Requires-Dist: oldest>=2,<3; extra == "old"
Requires-Dist: broken>=1; extra == "broken"
Requires-Dist: missing>=1; extra == "missing"
Requires-Dist: streamdsl[missing]; extra == "nested"
Requires-Dist: whole[more]>=1; extra == "whole"
Requires-Dist: fine>=1; extra == "fine"
Requires-Dist: missing>=1; extra == "dev"
"""
EXTRAS: Final = ("old", "broken", "missing", "nested", "whole", "fine", "dev")


def provide(folder: Path, name: str, version: str, metadata: str = "", module: str | None = None) -> None:
    """Install a package into a folder, as pip does with `--target`."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if module is not None:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(module)


def asked(folder: Path, *extra: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `streamdsl doctor` where the packages of a folder come first."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    command = [sys.executable, "-m", "streamdsl", "doctor", *extra]
    settings = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=100)


def parts(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {part["name"]: part for part in json.loads(done.stdout)["parts"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An installation of streamdsl with extras, and of some of their packages."""
    provide(tmp_path, "streamdsl", "9.8.7", OWN + "".join(f"Provides-Extra: {name}\n" for name in EXTRAS))
    provide(tmp_path, "oldest", "1.9", module="")
    provide(tmp_path, "broken", "1.0", module="raise OSError('no such symbol')")
    more = 'Metadata-Version: 2.1\nName: whole\nVersion: 1.0\nRequires-Dist: missing; extra == "more"\nProvides-Extra: more\n'
    provide(tmp_path, "whole", "1.0", more, module="")
    provide(tmp_path, "fine", "1.0", module="")
    return tmp_path


def test_each_extra_is_told_with_its_remedy(folder: Path) -> None:
    done = asked(folder, "--json")
    found = parts(done)
    told = {name: (found[f"[{name}]"]["state"], found[f"[{name}]"]["found"]) for name in EXTRAS[:-1]}
    assert told == {
        "old": ("wrong", "oldest 1.9, and >=2,<3 is needed"),
        "broken": ("wrong", "broken 1.0 cannot be imported: OSError: no such symbol"),
        "missing": ("absent", "missing is not installed"),
        "nested": ("absent", "missing is not installed"),
        "whole": ("absent", "missing is not installed"),
        "fine": ("ok", "fine 1.0"),
    }
    assert found["[nested]"]["remedy"] == "pip install 'streamdsl[nested]'"
    assert found["[old]"]["remedy"] == "pip install 'oldest>=2,<3'"
    assert "[dev]" not in found
    assert json.loads(done.stdout)["streamdsl"] == "9.8.7"
    assert (json.loads(done.stdout)["sound"], done.returncode) == (False, 1)


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        ({"url": "file:///a%20clone", "dir_info": {}}, "/a clone[missing]"),
        (
            {"url": "https://host/it.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "streamdsl[missing] @ git+https://host/it.git@c0ffee",
        ),
        ({"url": "https://host/it-1.0.whl", "archive_info": {}}, "streamdsl[missing] @ https://host/it-1.0.whl"),
    ],
)
def test_an_extra_is_installed_from_where_streamdsl_was(folder: Path, origin: dict[str, Any], told: str) -> None:
    (folder / "streamdsl-9.8.7.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    assert parts(asked(folder, "--json"))["[missing]"]["remedy"] == f"pip install '{told}'"


def test_what_is_absent_is_not_wrong(tmp_path: Path) -> None:
    provide(tmp_path, "streamdsl", "1.0", OWN + "Provides-Extra: missing\nProvides-Extra: fine\n")
    provide(tmp_path, "fine", "1.0", module="")
    done = asked(tmp_path, **sound_java(tmp_path))
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "streamdsl 9.8.7"
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["Python", ".".join(map(str, sys.version_info[:3]))],
        ["numpy", __import__("numpy").__version__],
        ["a", "query"],
    ]
    assert lines[4:] == [
        "- [missing]  missing is not installed: pip install 'streamdsl[missing]'",
        "  [fine]     fine 1.0",
        "  Java       21",
        "What is installed can work.",
    ]


def test_a_core_that_is_not_whole_is_wrong(tmp_path: Path) -> None:
    provide(tmp_path, "streamdsl", "1.0", OWN.replace("numpy>=2.0", "numpy>=999"))
    found = parts(asked(tmp_path, "--json", **sound_java(tmp_path)))
    assert found["numpy"]["state"] == "wrong"
    assert "999 is needed" in found["numpy"]["found"]
    assert found["numpy"]["remedy"] == "pip install 'numpy>=999'"
    assert "a query" not in found
    (tmp_path / "streamdsl-1.0.dist-info" / "METADATA").write_text(OWN.replace(">=3.11", ">=9"))
    done = asked(tmp_path, **sound_java(tmp_path))
    assert "! Python " in done.stdout
    assert done.stdout.endswith("1 part marked ! cannot work.\n")
    assert done.returncode == 1


def java_of(folder: Path, version: str) -> dict[str, str]:
    """Return the settings with which a Java of a version is found."""
    program = folder / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder / "jdk")}


def sound_java(folder: Path) -> dict[str, str]:
    return java_of(folder, "21.0.1")


@pytest.mark.skipif(find_spec("pyspark") is None, reason="pip install 'streamdsl[spark]'")
@pytest.mark.parametrize(
    ("version", "state", "told"),
    [
        ("17.0.15", "ok", "17"),
        ("21", "ok", "21"),
        ("11.0.2", "wrong", "11 at JAVA_HOME"),
        ("1.8.0_202", "wrong", "8 at JAVA_HOME"),
        ("soon", "wrong", "there is none at JAVA_HOME"),
    ],
)
def test_spark_needs_a_java(tmp_path: Path, version: str, state: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in java_of(tmp_path, version).items():
        monkeypatch.setenv(name, value)
    found = java()
    assert (found.state, found.found.startswith(told)) == (state, True)
    assert ("install Java 17" in found.remedy) == (state != "ok")


def test_without_spark_no_java_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert (java().state, java().found) == (
        "absent",
        f"there is none at JAVA_HOME, which is {tmp_path}; only runs on Spark need it",
    )


def test_the_environment_of_the_tests_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--json"])
    said = json.loads(capsys.readouterr().out)
    wrong = [part for part in said["parts"] if part["state"] == "wrong"]
    assert (wrong, status, said["sound"]) == ([], 0, True)
    assert {"Python", "numpy", "pandas", "a query", "[arrow]", "[spark]", "Java"} <= {part["name"] for part in said["parts"]}


def test_the_extras_are_those_of_the_project() -> None:
    import tomllib

    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert named.keys() >= FOR_ITS_MAKERS
    packages = {each.package for name in named for each in requirements("streamdsl", name)}
    assert packages >= READ_NOT_IMPORTED
    assert {part.name for part in extras()} <= {f"[{name}]" for name in named.keys() - FOR_ITS_MAKERS}


def test_the_command_has_a_name_of_its_own() -> None:
    (point,) = entry_points(group="console_scripts", name="streamdsl")
    assert point.load() is main
    script = Path(sys.executable).parent / "streamdsl"
    done = subprocess.run([script, "--version"], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("streamdsl ")
