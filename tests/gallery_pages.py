"""Write docs/gallery/, a page for each file of udm_examples/, from the docstrings there (`make docs`)."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import udm_examples
from streamdsl.udm import (
    UDA,
    UDO,
    UDSO,
    IncrementalUDA,
    IncrementalUDO,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
)
from tests.operator_pages import paragraphs
from tests.tables import table

FOLDER: Final = Path(__file__).parent.parent / "docs" / "gallery"
BASES: Final[Sequence[type]] = [
    *(UDA, TimeSensitiveUDA, IncrementalUDA, TimeSensitiveIncrementalUDA),
    *(UDO, TimeSensitiveUDO, IncrementalUDO, TimeSensitiveIncrementalUDO, UDSO),
]
HEAD: Final = """
# Gallery of modules

Modules to use and to copy from: aggregates (UDA), operators (UDO) and stream operators (UDSO), each with its source and a story
in a query. They come with `streamdsl`: `from udm_examples import Vwap`. How they are made is in
[writing a module](../udm-writer.md); all are held to the laws of their kind by `streamdsl.testing.check_udm`. `make docs` writes
these pages from the docstrings.
"""


def modules() -> dict[ModuleType, list[type]]:
    """Return the modules of the gallery, by their file."""
    found: dict[ModuleType, list[type]] = {}
    for name in udm_examples.__all__:
        cls = getattr(udm_examples, name)
        if issubclass(cls, tuple(BASES)):
            found.setdefault(sys.modules[cls.__module__], []).append(cls)
    return dict(sorted(found.items(), key=lambda each: each[0].__name__))


def pages() -> dict[Path, str]:
    """Return every page's text, by its file; the first lists the others."""
    files = modules()
    rows = [(f"[`{cls.__name__}`]({_name(file)}.md)", _kind(cls), _sentence(cls)) for file, all in files.items() for cls in all]
    listed = "\n".join(f"- [{_title(classes)}]({_name(file)}.md)" for file, classes in files.items())
    first = "\n\n".join([HEAD.strip(), table(("module", "kind", "what it gives"), rows).strip(), "## By file", listed])
    return {FOLDER / "README.md": f"{first}\n", **{FOLDER / f"{_name(file)}.md": page(file) for file in files}}


def page(file: ModuleType) -> str:
    """Return a file's page: what it is about and where that comes from, then its modules."""
    path = f"udm_examples/{_name(file)}.py"
    head = [f"# {_title(modules()[file])}", *paragraphs(file), f"Code: [`{path}`](../../{path})."]
    parts = [part for cls in modules()[file] for part in (f"## `{cls.__name__}`", *_documented(cls, file))]
    return "\n\n".join([*head, *parts]) + "\n"


def _name(file: ModuleType) -> str:
    return file.__name__.rpartition(".")[2]


def _title(classes: list[type]) -> str:
    return ", ".join(cls.__name__ for cls in classes)


def _kind(cls: type) -> str:
    return next(f"`{base.__name__}`" for base in cls.__mro__ if base in BASES)


def _sentence(cls: type) -> str:
    return re.split(r"(?<=\.) ", next(paragraphs(cls)).replace("\n", " "))[0].rstrip(".")


def _documented(cls: type, file: ModuleType) -> Iterator[str]:
    """Yield the paragraphs of a module's docstring; its first example begins with what its examples import."""
    found = list(paragraphs(cls))
    examples = [n for n, paragraph in enumerate(found) if paragraph.startswith("```python")]
    used = set(re.findall(r"\w+", "\n".join(found[n] for n in examples)))
    for n, paragraph in enumerate(found):
        imports = _imports(used & vars(file).keys(), file) if [n] == examples[:1] else ()
        yield paragraph.replace("```python\n", "\n".join(["```python", *imports, ""]))


def _imports(names: set[str], file: ModuleType) -> Iterator[str]:
    """Yield what makes names of a file known elsewhere."""
    homes: dict[str, list[str]] = {}
    for name in sorted(name for name in names if not name.startswith("_") and not inspect.ismodule(vars(file)[name])):
        home = getattr(vars(file)[name], "__module__", file.__name__)
        homes.setdefault("udm_examples" if name in udm_examples.__all__ else home, []).append(name)
    yield from [">>> import streamdsl as sd"] if "sd" in names else []
    yield from (f">>> from {home} import {', '.join(imported)}" for home, imported in sorted(homes.items()))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
