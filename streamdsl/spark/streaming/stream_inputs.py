"""The inputs of a streaming query: which are streams, which are all there before it begins, and how far each comes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from streamdsl.emit import Emit, EmitMode, mode_of
from streamdsl.errors import NoProgressWarning, QueryError, UnsupportedOnSpark, level_of_caller, with_hint
from streamdsl.plan.facts import Keeps
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Group, Node, Source, sources
from streamdsl.plan.units import in_unit
from streamdsl.spark.flow import Flow
from streamdsl.spark.frame_layout import FrameLayout
from streamdsl.spark.frame_roles import SourceFrame
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.source_frames import events_of_frame, events_of_history, source_of_frame
from streamdsl.spark.streaming.bounded_inputs import precompute_bounded
from streamdsl.spark.unread_columns import without_unread
from streamdsl.temporal import Progress, Unit, common_unit

_WATERMARK: Final = "spark.watermarkDelayMs"


@dataclass(frozen=True, slots=True, eq=False)
class StreamInputs:
    """A plan over sources of events, and the flow of each; the rows of those in `bounded` are there before the stream begins."""

    plan: Node
    flows: Mapping[str, Flow]
    bounded: Collection[str]
    unit: Unit | None


def stream_inputs(
    plan: Node, frames: Mapping[str, SourceFrame], own: Callable[[Source], Flow], emit: EmitMode | Emit
) -> StreamInputs:
    """Return the inputs of a plan over frames, some of them streaming; `own` returns the rows that a source has in the query.

    A static frame is all that its source will ever bring, as are the rows of a source that the query itself is bound to.
    """
    plan = _with_watermarks(without_unread(plan, frames), frames)
    streams, static = ({n: f for n, f in frames.items() if f.rows.isStreaming is streaming} for streaming in (True, False))
    if not streams:
        raise QueryError(
            "all sources of the query are bound to bounded data, so there is nothing to stream",
            hint="use batch(), or run(); a frame of spark.readStream makes a stream",
        )
    named = sources(plan)
    for name in streams:
        _check_policy(named[name])
    events = {name: events_of_frame(named[name], frame) for name, frame in streams.items()}
    rows = {
        name: source_of_frame(node, static[name]) if name in static else own(node)
        for name, node in named.items()
        if name not in streams
    }
    unit = common_unit(*(flow.unit for flow in (*events.values(), *rows.values())))
    rows = {name: replace(flow, unit=unit) for name, flow in rows.items()}

    def computed(part: Node) -> Flow:
        return events_of_history(rows[part.source] if isinstance(part, Source) else lower(lowering(part, rows)))

    _warn_of_silent(plan, streams, mode_of(emit) == "final")
    over, bounded = precompute_bounded(in_unit(plan, unit), rows, computed)
    return StreamInputs(over, {**events, **bounded}, bounded.keys(), unit)


def _check_policy(source: Source) -> None:
    """Raise `UnsupportedOnSpark` for what a policy asks that needs the order of rows, or a look at other sources."""
    policy = source.progress
    if policy is not None and (policy.max_jump is not None or policy.idle is not None):
        raise UnsupportedOnSpark(
            f"the source {source.source!r} has {policy}: in a stream on Spark the rows of a micro-batch have no order, and no "
            "source sees how far another one is",
            hint="leave max_jump= and idle_after() out, filter the frame, or take CTIs by Progress.imported_from(...)",
        )


def _warn_of_silent(plan: Node, streams: Mapping[str, SourceFrame], is_final: bool) -> None:
    """Warn of sources whose CTI never moves: they have no policy, and no CTIs can be among their rows.

    Final rows then never come. Others do, but operators forget nothing of what they keep; without such operators nothing is said.
    """
    named = sources(plan)
    silent = [name for name in streams if not named[name].progress and not FrameLayout.of(named[name], streams[name]).physical]
    keeping = _keeping(plan, silent)
    if silent and (is_final or keeping):
        name = silent[0]
        what = (
            "nothing will come out: final rows wait for" if is_final else f"the state of {_and(keeping)} only grows: it goes with"
        )
        warnings.warn(
            with_hint(
                f"{what} CTIs, and none come from {_and(map(repr, silent))}",
                f'frame.withWatermark("{streams[name].start}", "10 seconds") for a column of timestamps, or a policy, '
                f"sd.source({name!r}, progress=sd.Progress.slack(...)), or a frame of physical events with CTIs among them",
            ),
            NoProgressWarning,
            stacklevel=level_of_caller(),
        )


def _keeping(plan: Node, silent: Sequence[str]) -> list[str]:
    """Return the labels of the operators that keep something of the rows of some sources."""
    names = labels(plan)
    found = []
    for node in plan.walk_all():
        if node.keeps is not Keeps.NOTHING and any(isinstance(leaf, Group) or leaf.source in silent for leaf in _origins(node)):
            found.append(names[id(node)])
    return found


def _origins(node: Node) -> Iterator[Source | Group]:
    return (leaf for leaf in node.leaves if isinstance(leaf, (Source, Group)))


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)


def _with_watermarks(plan: Node, frames: Mapping[str, SourceFrame]) -> Node:
    """Return the plan with Spark's watermark on the column of LEs as the progress policy of each source that has none."""

    def marked(node: Node) -> Node:
        if not isinstance(node, Source) or node.progress is not None or node.source not in frames:
            return node
        frame = frames[node.source]
        delays = [field.metadata.get(_WATERMARK) for field in frame.rows.schema.fields if field.name == frame.start]
        delay = delays[0] if delays else None
        return node if delay is None else replace(node, progress=Progress.slack(timedelta(milliseconds=delay)))

    return plan.mapped(marked)
