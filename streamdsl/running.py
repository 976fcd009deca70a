"""Running a query: binds sources to inputs, and dispatches the plan to an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import NO_SOURCE, QueryError, UnboundedOutputError
from streamdsl.extras import need, need_spark
from streamdsl.plan.explain import RUNS
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Source, sources
from streamdsl.plan.outputs import Outputs, outputs_of
from streamdsl.plan.parameters import settled, with_defaults
from streamdsl.plan.types import output_types
from streamdsl.plan.units import in_unit
from streamdsl.temporal import INFINITY, common_unit, to_ticks
from streamdsl.temporal.display import Lines

if TYPE_CHECKING:
    import os

    from streamdsl.debugger import EventTrace
    from streamdsl.engine.query_session import Session
    from streamdsl.io.binding import Bound
    from streamdsl.papers.secret import Profile, Trace
    from streamdsl.result import Result

EngineName: TypeAlias = Literal["local", "reference", "spark"]
Options: TypeAlias = Mapping[str, Any] | None
Times: TypeAlias = tuple[str | None, str | None, str | None]
"""The fields of a row for its application time, system time and batch; None if there is no such field."""

ENGINES: Final = get_args(EngineName)
MOST_WORKERS: Final = 256
_WORK: Final = {"local": "running", "reference": "running the reference", "spark": "running on Spark"}


def run(
    plan: Node,
    own: Mapping[str, Bound],
    given: Mapping[str, Any] | None,
    engine: str,
    until: object,
    options: Options,
    workers: int | None = None,
) -> Result[Any]:
    """Run a plan over its bounded inputs on an engine."""
    return run_outputs(Outputs((plan,)), own, given, engine, until, options, workers)[0]


def run_outputs(
    plan: Node,
    own: Mapping[str, Bound],
    given: Mapping[str, Any] | None,
    engine: str,
    until: object,
    options: Options,
    workers: int | None = None,
) -> list[Result[Any]]:
    """Run several plans over their bounded inputs on an engine; the local engine runs them as one graph."""
    from streamdsl.monitoring.progress_meter import timed

    check_engine(engine)
    n = checked_workers(workers, engine)
    plan = settled(plan)
    bindings = bound(plan, own, given or {})
    plan = in_unit(plan, common_unit(plan.unit, *(input.unit for input in bindings.values())))
    end = None if until is None else to_ticks(until, plan.unit)
    try:
        with timed(_WORK[engine]):
            results = _run_on(engine, plan, bindings, end, options, n)
    except UnboundedOutputError as error:
        raise error.in_unit(plan.unit).with_traceback(error.__traceback__) from error.__cause__
    parts = [(part.schema, partial(output_types, part)) for part in outputs_of(plan)]
    return [
        result.with_fields(schema.names if schema else (), types) for result, (schema, types) in zip(results, parts, strict=True)
    ]


def _run_on(
    engine: str, plan: Node, bindings: Mapping[str, Bound], end: int | None, options: Options, workers: int | None
) -> list[Result[Any]]:
    if engine == "reference":
        from streamdsl.denote import run_reference

        return [run_reference(part, bindings, end) for part in outputs_of(plan)]
    from streamdsl.rewrite import as_chosen, project_inputs

    plan, own = as_chosen(plan, "run", options, engine)
    if engine == "spark":
        need_spark()
        from streamdsl.spark import run_batch

        return [run_batch(part, bindings, end) for part in outputs_of(plan)]
    plan, bindings = project_inputs(plan, bindings, options)
    if workers is not None:
        from streamdsl.sharding.local_cut import uses_workers
        from streamdsl.sharding.sharded_session import run_sharded

        if uses_workers(outputs_of(plan)[0]):
            return run_sharded(Outputs(outputs_of(plan)), bindings, end, own, workers)
    from streamdsl.engine.run import run_outputs as run_local

    return run_local(Outputs(outputs_of(plan)), bindings, end, own)


def trace(
    plan: Node,
    own: Mapping[str, Bound],
    given: Mapping[str, Any] | None,
    until: object,
    last: int | None,
    sample: tuple[float, Any] | None,
    options: Options,
) -> EventTrace:
    """Run a plan over its bounded inputs on the local engine, and record it."""
    plan = settled(plan)
    bindings = bound(plan, own, given or {})
    plan = in_unit(plan, common_unit(plan.unit, *(input.unit for input in bindings.values())))
    end = INFINITY if until is None else to_ticks(until, plan.unit)
    from streamdsl.debugger import EventTrace
    from streamdsl.monitoring.progress_meter import timed

    with timed("tracing"):
        return EventTrace.of_run(plan, bindings, end, options, last, sample)


def as_of(
    plan: Node,
    own: Mapping[str, Bound],
    given: Mapping[str, Any] | None,
    profile: Profile,
    columns: Times,
) -> Trace:
    """Run a plan over its bounded input as an engine with this profile would."""
    plan = settled(plan)
    trace: Trace = under(profile, plan, bound(plan, own, given or {}), columns)
    return trace


@singledispatch
def under(profile: object, plan: Node, bindings: Mapping[str, Bound], columns: Times) -> Any:
    """Run a plan over bound inputs under a profile; each kind of profile registers its implementation here."""
    raise QueryError(f"{profile!r} is no profile", hint="secret.STREAM, CORAL8, STREAMBASE, ORACLE_CEP, or a secret.Profile")


def explain(plan: Node, engine: str, rules: bool = False, workers: int | None = None) -> str:
    """Return a plan as text, as an engine would run it; with `rules` also the optimizer's rewrites, with `workers` its stages."""
    check_engine(engine)
    from streamdsl.rewrite import explain as explain_plan

    if checked_workers(workers, engine) is not None:
        from streamdsl.rewrite import as_chosen
        from streamdsl.sharding.local_cut import explain_workers

        plan = with_defaults(plan)
        return Lines(f"{explain_plan(plan, engine, rules)}\n{explain_workers(as_chosen(plan, 'speculative', None)[0])}")
    return Lines(explain_plan(settled(plan) if engine == "spark" else with_defaults(plan), engine, rules))


def _runs_locally(plan: Node) -> Mapping[str, str]:
    from streamdsl.engine.lower import operator_kinds

    return operator_kinds(plan)


def _runs_on_spark(plan: Node) -> Mapping[str, str]:
    need_spark()
    from streamdsl.spark import explain_spark

    return explain_spark(plan)


def _runs_on_reference(plan: Node) -> Mapping[str, str]:
    return dict.fromkeys(labels(plan).values(), "denotation")


RUNS.update(local=_runs_locally, reference=_runs_on_reference, spark=_runs_on_spark)


def check_engine(engine: str) -> None:
    """Raise `QueryError` for an unknown engine."""
    if engine not in ENGINES:
        raise QueryError(
            f"there is no engine {engine!r}; the engines are: {', '.join(ENGINES)}", hint='for example run(engine="local")'
        )


def checked_workers(workers: object, engine: str = "local") -> int | None:
    """Return a number of workers that was asked for, None for none; raises `QueryError` for what is none."""
    if workers is None:
        return None
    if type(workers) is not int or not 1 <= workers <= MOST_WORKERS:
        raise QueryError(
            f"workers is a number of processes, from 1 to {MOST_WORKERS}, not {workers!r:.80}",
            hint="workers=2, or as many as there are cores; or leave it out",
        )
    if engine != "local":
        raise QueryError(f"the engine {engine!r} has no workers here; those of Spark are its own", hint='run(engine="local")')
    need("cloudpickle", "workers", "workers")
    return workers


def check_workers(plan: Node, emit: EmitMode | Emit, workers: object) -> None:
    """Raise `QueryError` for what is no number of workers, and for a plan that cannot be cut for them."""
    if checked_workers(workers) is not None:
        from streamdsl.engine.opened_plan import OpenedPlan
        from streamdsl.sharding.local_cut import uses_workers

        uses_workers(OpenedPlan.of(settled(plan), emit, None).plan)


def open_session(
    plan: Node, own: Mapping[str, Bound], emit: EmitMode | Emit, options: Options, workers: int | None = None
) -> Session[Any]:
    """Start a session of the local engine."""
    runnable_sources(plan)
    plan = settled(plan)
    if (n := checked_workers(workers)) is not None:
        from streamdsl.sharding.sharded_session import open_in_workers

        if (session := open_in_workers(plan, own, emit, options, n)) is not None:
            return session
    from streamdsl.engine.starting import open_session as open_local

    return open_local(plan, own, emit, options)


def restore_session(
    plan: Node,
    own: Mapping[str, Bound],
    path: str | os.PathLike[str],
    trust: bool,
    types: Iterable[type],
    workers: int | None = None,
) -> Session[Any]:
    """Restore a session of the local engine from a checkpoint file."""
    runnable_sources(plan)
    from streamdsl.engine.state.whole_files import read_whole

    return session_of(plan, own, read_whole(path), trust, types, workers)


def session_of(
    plan: Node, own: Mapping[str, Bound], data: bytes, trust: bool, types: Iterable[type] = (), workers: int | None = None
) -> Session[Any]:
    """Restore a session of the local engine from what its `snapshot` has returned."""
    from streamdsl.engine.starting import restored
    from streamdsl.engine.state.checkpoint import OF_SHARDS

    plan, n = settled(plan), checked_workers(workers)
    if n is not None or data.startswith(OF_SHARDS):
        need("cloudpickle", "shards", "workers")
        from streamdsl.sharding.sharded_session import restored_in_workers

        if (session := restored_in_workers(plan, own, data, trust, types, n or 0)) is not None:
            return session
    return restored(plan, own, data, trust, types)


def runnable_sources(plan: Node) -> dict[str, Source]:
    """Return the sources of a plan by name; raises `QueryError` for the sub-query of a group, which cannot run alone."""
    if plan.level >= 0:
        raise QueryError(
            "this query is the inside of group_by(...).apply(...), and runs only as a part of it",
            hint="return it from the lambda that apply was given",
        )
    return sources(plan)


def bound(plan: Node, own: Mapping[str, Bound], given: Mapping[str, Any]) -> dict[str, Bound]:
    """Return the input of each source of a plan; raises `QueryError` for a source without input, and for an unknown name."""
    from streamdsl.io.readers import bind

    named = runnable_sources(plan)
    if not isinstance(given, Mapping):
        raise QueryError(
            f"the bindings give each source its input by name, they are not a {type(given).__name__}",
            hint=f"run({{{next(iter(named), 'name')!r}: events_or_frame}})",
        )
    for name in given:
        if name not in named:
            raise QueryError(
                f"there is no source {name!r}; the sources of this query are: {', '.join(named) or '(none)'}", hint=NO_SOURCE
            )
    for name in named:
        if name not in own and name not in given:
            raise QueryError(f"the source {name!r} is not bound to any input", hint=f"run({{{name!r}: events_or_frame}})")
    inputs = {name: value for name, value in {**own, **given}.items() if name in named}
    return {name: bind(_unwrapped(value, named[name]), named[name]) for name, value in inputs.items()}


def _unwrapped(value: Any, source: Source) -> Any:
    """Return the input of a stream that is a bounded source, such as `sd.from_events(...)`; other values unchanged."""
    node = getattr(value, "_node", None)
    if not isinstance(node, Source) or node.source not in value._bindings:
        return value
    for name, default in (("progress", None), ("on_violation", "error")):
        asked = getattr(node, name)
        if asked not in (default, getattr(source, name)):
            raise QueryError(
                f"the input of {source.source!r} asks for {name}={asked!r}, but the source that it is bound to decides",
                hint=f"sd.source({source.source!r}, ..., {name}=...)",
            )
    return value._bindings[node.source]
