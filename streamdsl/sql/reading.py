"""Whether a query is over fluent streams or over batches of `cql` (paper 002), and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamdsl.sql.aggregating import is_module
from streamdsl.sql.named_inputs import Sources
from streamdsl.sql.parsing import Text
from streamdsl.stream import Stream


def read(text: Text, tree: Any, groups: tuple[Any, ...], given: Mapping[str, Any]) -> Sources:
    """Return the inputs of a query; they are batched if it uses SPREAD, ROWS and the like, or reads streams of batches."""
    modules = {name: value for name, value in given.items() if is_module(value)}
    functions = {name: value for name, value in given.items() if callable(value) and name not in modules}
    named = {name: value for name, value in given.items() if name not in modules and name not in functions}
    sources = Sources(text, named, functions, modules)
    batched = _needs_batches(tree)
    if not batched and not groups and all(isinstance(value, Stream) for value in named.values()):
        return sources
    from streamdsl.sql.batches import with_batches

    return with_batches(sources, tree, groups, batched)


def _needs_batches(tree: Any) -> bool:
    words = any(any(tree.find_data(rule)) for rule in ("spread", "rows", "keep"))
    every = any(select.children[-1] is not None for select in tree.find_data("select"))
    return words or every or any(str(token).upper() == "RSTREAM" for token in tree.scan_values(_is_to_stream))


def _is_to_stream(value: Any) -> bool:
    return getattr(value, "type", "") == "TO_STREAM"
