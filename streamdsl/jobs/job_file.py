"""Jobs by name in a file: `[tool.streamdsl.jobs.NAME]` of pyproject.toml, or `[jobs.NAME]` of streamdsl.toml."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tomllib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO, cast

from streamdsl.errors import QueryError

OWN_FILE: Final = "streamdsl.toml"
_FILES: Final = ((OWN_FILE, ()), ("pyproject.toml", ("tool", "streamdsl")))
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_SHORTEST: Final = 4
"""Values of fewer characters are not hidden: too much else has them."""


class JobArguments:
    """The arguments of a job in the file of the current folder; the values of environment variables in them are `secrets`.

    Raises `QueryError` if there is no such job, or it has what no option is called.
    """

    def __init__(self, name: str, options: argparse.Namespace, secrets: dict[str, str]) -> None:
        self._secrets = secrets
        self._path, jobs = _jobs()
        if name not in jobs:
            known = ", ".join(jobs) or "(none)"
            raise QueryError(f"{self._path} has no job {name!r}; its jobs are: {known}", hint=f"[{_table(self._path)}.{name}]")
        self._name, self._options = name, options
        self._actions = {each.option_strings[-1][2:]: each for each in options.parser._actions if each.option_strings}
        self.arguments = [argument for key, value in jobs[name].items() for argument in self._of(key, value)]

    def _of(self, key: str, value: Any) -> Iterator[str]:
        """Yield the arguments of a key, but for those that the command line gives itself."""
        if key == "query":
            if self._options.query is None:
                yield self._text(key, value)
            return
        known = [name for name in self._actions if name not in ("help", "job")]
        if key not in known:
            raise self._wrong(f"what no option is called, {key!r}; there are: query, {', '.join(known)}")
        action = self._actions[key]
        if action.nargs == 0:
            if not isinstance(value, bool):
                raise self._wrong(f"{key} = {value!r}, which is true or false")
            if value and not (self._options.once or self._options.follow):
                yield f"--{key}"
        elif isinstance(action.default, list):
            given = getattr(self._options, action.dest)
            yield from (f"--{key}={text}" for text in self._texts(key, value) if not _is_replaced(text, given))
        else:
            yield f"--{key}={self._text(key, value)}"

    def _texts(self, key: str, value: Any) -> Iterator[str]:
        """Yield the texts of a value that may be several, in a list or by name."""
        if isinstance(value, Mapping):
            for name, inner in value.items():
                yield from (f"{name}={text}" for text in self._texts(key, inner))
        elif isinstance(value, list):
            for each in value:
                yield from self._texts(key, each)
        else:
            yield self._text(key, value)

    def _text(self, key: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise self._wrong(f"{key} = {value!r}, which is a text")
        return _VARIABLE.sub(self._variable, str(value))

    def _variable(self, found: re.Match[str]) -> str:
        name = found[1]
        if name not in os.environ:
            raise self._wrong(f"${{{name}}}, and there is no such environment variable", f"export {name}=...")
        self._secrets[os.environ[name]] = f"${{{name}}}"
        return os.environ[name]

    def _wrong(self, what: str, hint: str = "docs/command-line.md#jobs-in-a-file shows one") -> QueryError:
        return QueryError(f"the job {self._name!r} in {self._path} has {what}", hint=hint)


def with_job(options: argparse.Namespace, given: Sequence[str], secrets: dict[str, str]) -> argparse.Namespace:
    """Return the options of a command line that names a job, whose own count; the job's secrets are noted."""
    job = JobArguments(options.named_job, options, secrets)
    found: argparse.Namespace = options.parser.parse_args([*job.arguments, *given])
    return found


@contextlib.contextmanager
def secrets_hidden() -> Iterator[dict[str, str]]:
    """Write the names of secrets in place of their values to the standard error, tracebacks included; give what notes them."""
    secrets: dict[str, str] = {}
    with contextlib.redirect_stderr(cast(TextIO, _Hiding(sys.stderr, secrets))):
        try:
            yield secrets
        except Exception:
            if not secrets:
                raise
            traceback.print_exc()
            raise SystemExit(1) from None


class _Hiding:
    """A stream that does not show secrets."""

    def __init__(self, stream: TextIO, secrets: Mapping[str, str]) -> None:
        self._stream, self._secrets = stream, secrets

    def write(self, text: str) -> int:
        for value in sorted(self._secrets, key=len, reverse=True):
            if len(value) >= _SHORTEST:
                text = text.replace(value, self._secrets[value])
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _jobs() -> tuple[Path, Mapping[str, Any]]:
    """Return the file of the current folder, and the jobs in it."""
    for name, tables in _FILES:
        path = Path(name)
        if path.exists():
            found = _read(path)
            for table in tables:
                found = found.get(table, {})
            if found or name == OWN_FILE:
                if unknown := [key for key in found if key != "jobs"]:
                    raise QueryError(f"{path} has what is not known, {unknown[0]!r}; it has jobs", hint=f"[{_table(path)}.NAME]")
                return path, found.get("jobs", {})
    raise QueryError(
        f"there are no jobs in {Path.cwd()}", hint=f"[jobs.NAME] in {OWN_FILE}, or [tool.streamdsl.jobs.NAME] in pyproject.toml"
    )


def _read(path: Path) -> Any:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"{path} is no TOML: {error}", hint="docs/command-line.md#jobs-in-a-file shows one") from None


def _table(path: Path) -> str:
    return "jobs" if path.name == OWN_FILE else "tool.streamdsl.jobs"


def _is_replaced(text: str, given: Sequence[str]) -> bool:
    """Say whether the command line gives another one in the place of `name=value`, or of a value without a name.

    >>> _is_replaced("cars=a.jsonl", ["cars=b.jsonl"]), _is_replaced("cars=a.jsonl", ["tolls=b.jsonl"])
    (True, False)
    """
    name, names = _name(text), [_name(each) for each in given]
    return bool(names) and (not name or "" in names or name in names)


def _name(text: str) -> str:
    name, equals, _ = text.partition("=")
    return name if equals and "/" not in name else ""
