"""Bounded inputs of a streaming query: the parts of a plan that read only these are computed before the stream starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamdsl.denote.source import history
from streamdsl.engine.run import run
from streamdsl.io.binding import Bound
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Source
from streamdsl.spark.codec import encode
from streamdsl.spark.flow import Flow
from streamdsl.spark.source_frames import type_of_rows
from streamdsl.temporal import CHT, INFINITY


@dataclass(frozen=True, slots=True, eq=False)
class BoundedInputs:
    """A plan whose bounded parts are sources, with the flow and the rows (a batch of physical events) of each of these."""

    plan: Node
    flows: Mapping[str, Flow]
    rows: Mapping[str, Any]


def precompute_bounded(plan: Node, own: Mapping[str, Bound]) -> BoundedInputs:
    """Return a plan in which each maximal part over bounded inputs is a source that holds its result."""
    named, flows, rows = labels(plan), {}, {}
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            done[id(node)] = made(node) if _is_own(node, own) else node.map_inputs(visit)
        return done[id(node)]

    def made(node: Node) -> Node:
        if isinstance(node, Source):
            name, cht = node.source, history(node, own[node.source].events(), own[node.source].unit)
        else:
            name, cht = f"the rows of {named[id(node)]}", run(node, own).cht()
        schema, kind = type_of_rows(node.schema, cht)
        unit = cht.unit or node.unit
        flows[name], rows[name] = Flow.of(kind, unit, lambda: None), _events(cht, kind)
        return Source(name, schema, unit)

    return BoundedInputs(visit(plan), flows, rows)


def _is_own(node: Node, own: Mapping[str, Bound]) -> bool:
    return all(each.source in own for each in node.walk() if isinstance(each, Source))


def _events(cht: CHT[Any], kind: Any) -> Any:
    """Return a history as a batch of insertions, in the columns of a source frame."""
    n = len(cht)
    le, re = (pa.array([getattr(row, name) for row in cht], pa.int64()) for name in ("le", "re"))
    never, payloads = pa.array([INFINITY] * n, pa.int64()), encode([row.payload for row in cht], kind)
    names = ["kind", "id", "le", "re", "re_new", "p"]
    return pa.RecordBatch.from_arrays([pa.array(["insert"] * n), pa.nulls(n, pa.string()), le, re, never, payloads], names)
