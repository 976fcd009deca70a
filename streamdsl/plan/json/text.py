"""The text of a plan: format, version, the list of parts, and the index of the output."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from streamdsl.errors import QueryError
from streamdsl.expr.recursion import ensure_recursion_limit
from streamdsl.plan.base import Node
from streamdsl.plan.json.plan_reader import PlanReader
from streamdsl.plan.json.plan_writer import PlanWriter
from streamdsl.plan.labels import labels
from streamdsl.temporal.json_text import loads

VERSION: Final = 2
"""The version of the format; a reader accepts only its own."""
FORMAT: Final = "streamdsl plan"


def to_json(plan: Node) -> str:
    """Return a plan as JSON text; raises `QueryError` for values without a JSON form, such as an opaque lambda.

    >>> from streamdsl.plan.node import Distinct, Source
    >>> print(to_json(Distinct(Source("trips"))))  # doctest: +ELLIPSIS
    {
     "format": "streamdsl plan",
     "version": 2,
     "parts": [
      {"type": "Source", "source": "trips", "payload": null, ...},
      {"type": "Distinct", "input": {"$ref": 0}}
     ],
     "output": {"$ref": 1}
    }
    """
    ensure_recursion_limit(plan.depth, "this plan")
    writer = PlanWriter(labels(plan))
    output = writer.value(plan)
    parts = ",\n  ".join(json.dumps(part, allow_nan=False) for part in writer.parts)
    return (
        f'{{\n "format": {json.dumps(FORMAT)},\n "version": {VERSION},\n "parts": [\n  {parts}\n ],\n'
        f' "output": {json.dumps(output)}\n}}'
    )


def from_json(text: str, classes: Iterable[type] = ()) -> Node:
    """Return the plan in a text: equal to the plan that was written, with the same shared parts.

    `classes` are the payload classes that the text may name. Nothing is imported or unpickled; modules come from the repository
    by name. Raises `QueryError` for another version, and for text that is not a well-formed plan.

    >>> from streamdsl.plan.node import Source, shift
    >>> from_json(to_json(shift(Source("trips"), 5))) == shift(Source("trips"), 5)
    True
    """
    if not isinstance(text, (str, bytes)):
        raise _no_plan(f"it is a {type(text).__name__}")
    try:
        found = loads(text)
    except ValueError as error:
        raise _no_plan(f"it is no JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _no_plan(f'it has no "format": "{FORMAT}"')
    if found.get("version") != VERSION:
        raise QueryError(
            f"the text holds a plan of version {found.get('version')}, and this is streamdsl with version {VERSION}",
            hint="write it again with this version, or read it with the one that wrote it",
        )
    if not isinstance(found.get("parts"), list) or "output" not in found:
        raise _no_plan('it has no "parts" and "output"')
    reader = PlanReader({f"{each.__module__}:{each.__qualname__}": each for each in classes})
    for part in found["parts"]:
        reader.parts.append(reader.object(part))
    plan = reader.value(found["output"])
    if not isinstance(plan, Node):
        raise _no_plan(f"its output is no operator but {plan!r}")
    ensure_recursion_limit(plan.depth, "this plan")
    return plan


def _no_plan(what: str) -> QueryError:
    return QueryError(f"the text holds no plan: {what}", hint="plan.to_json() writes one")
