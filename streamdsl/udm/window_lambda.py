"""The lambda of `aggregate(lambda w: Stats(w.count(), w.avg(lambda e: e.fare)))`: traced into aggregates and their projection.

A lambda that cannot be traced is called for each window with an object that has the same methods over the window's rows.
"""

from __future__ import annotations

import dis
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, ClassVar, Literal, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.expr.bytecode import is_traceable, tree
from streamdsl.expr.closures import freeze_variables, with_environment
from streamdsl.expr.expression_functions import FUNCTIONS, Udf
from streamdsl.expr.facade import E, node_of
from streamdsl.expr.immutable import is_constant
from streamdsl.expr.nodes import Call, Expr, Field, Key, Opaque, Whole
from streamdsl.expr.predicates import check_function
from streamdsl.expr.proxies import result_node
from streamdsl.expr.recording import NotTraceable, StandIn, SymbolicValue, TraceRecorder, recording, recording_paused, refuse
from streamdsl.expr.row_evaluator import evaluate_row, holds_row, project_row
from streamdsl.expr.schema import Schema
from streamdsl.expr.stand_ins import PackageStandIn, is_package, stand_in, with_stand_ins
from streamdsl.expr.tracing import check_parameters, name_of, set_location, trace
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.udm import builtin
from streamdsl.udm.bases import AnyUDA, IntervalEvent, TimeSensitiveUDA, WindowDescriptor
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.counted_values import counted
from streamdsl.udm.invoke import EXCLUDED, MemberRow, aggregate
from streamdsl.windows import Clip

Aggregation: TypeAlias = tuple[tuple[BoundAgg, ...], Expr]
Module: TypeAlias = AnyUDA[Any, Any] | type[AnyUDA[Any, Any]]


def trace_window(function: Callable[..., Any], schema: Schema | None) -> Aggregation:
    """Return a window lambda's aggregates, and its result as an expression over their values, the fields `a0`, `a1`, ...

    A lambda that cannot be traced becomes a single aggregate, an `OpaqueWindow`. Raises `FieldNotFound` and `QueryError` as
    `trace` does.

    >>> aggregates, projection = trace_window(lambda w: w.sum(lambda e: e.fare) / w.count(), None)
    >>> [agg.function.label for agg in aggregates], projection
    (['sum', 'count'], Binary(op='/', left=Field(name='a0', side=0), right=Field(name='a1', side=0)))
    """
    check_function(function, "a window")
    check_parameters(function, 1, wanted="a window")
    traced = _attempt(function, schema) if type(function) is FunctionType else None
    return traced or _opaque(function)


def _attempt(function: FunctionType, schema: Schema | None) -> Aggregation | None:
    if not is_traceable(function.__code__, nesting=True):
        return None
    with recording() as attempt:
        try:
            copy = with_stand_ins(function, _stand_in)
            window = TracingWindow(schema, function, copy)
            expr = result_node(copy(window))
        except NotTraceable:
            return None
        except QueryError:
            raise
        except Exception:
            return None
    set_location(attempt, function)
    return window.traced(expr, attempt)


class Aggregates(ABC):
    """The methods of a window in a lambda: each is an aggregate of an expression over its rows, or of whole payloads."""

    __slots__ = ()

    @abstractmethod
    def _take(self, function: AnyUDA[Any, Any], f: Any, where: Any) -> Any:
        """Return an aggregate's value."""

    def quantile(self, f: Any, q: float, method: Literal["linear", "inverted_cdf"] = "linear", *, where: Any = None) -> Any:
        """Return the q-quantile."""
        return self._take(builtin.Quantile(q, method), f, where)

    def udm(self, module: Any, f: Any = None, *, where: Any = None) -> Any:
        """Return the value of a user-defined aggregate."""
        return self._take(_instance(module), f, where)


def _method(name: str, kind: type[AnyUDA[Any, Any]]) -> Callable[..., Any]:
    """Return the method of a window for a built-in aggregate without settings."""

    def method(self: Aggregates, f: Any = None, *, where: Any = None) -> Any:
        return self._take(kind(), f, where)

    method.__name__, method.__qualname__ = name, f"{Aggregates.__name__}.{name}"
    method.__doc__ = str(kind.__doc__).partition("\n")[0]
    return method


for _name, _kind in builtin.BUILTINS.items():
    if _name not in vars(Aggregates):
        setattr(Aggregates, _name, _method(_name, _kind))


def _instance(module: Any) -> AnyUDA[Any, Any]:
    if isinstance(module, ModuleRef):
        module = module.held
    with recording_paused():
        found = module() if isinstance(module, type) and issubclass(module, AnyUDA) else module
    if not isinstance(found, AnyUDA):
        raise QueryError(
            f"w.udm takes a user-defined aggregate, not {module!r}", hint="for example w.udm(Median(), lambda e: e.fare)"
        )
    return found


# Tracing.


class WindowE(E):
    """An expression over the aggregates of a window; operations with expressions over rows are refused."""

    __slots__ = ()


class TracingWindow(SymbolicValue, Aggregates):
    """The symbolic window with which a lambda is traced; it records the aggregates that the lambda calls."""

    __slots__ = ("_bound", "_copy", "_fields", "_function", "_schema")

    def __init__(self, schema: Schema | None, function: FunctionType, copy: FunctionType) -> None:
        self._schema = schema
        self._function = function
        self._copy = copy
        self._bound: list[BoundAgg] = []
        self._fields: list[Field] = []

    @property
    def key(self) -> WindowE:
        """The group's key."""
        return WindowE(Key())

    def traced(self, expr: Expr, attempt: TraceRecorder) -> Aggregation | None:
        """Return the aggregation, or None if the result does not depend on each recorded operation."""
        bound = self._bound or [BoundAgg(builtin.Count())]
        own = set(map(id, self._fields))
        if any(isinstance(part, (Field, Whole)) and id(part) not in own for part in expr.walk()):
            return None
        arguments = [part for agg in bound for part in (agg.argument, agg.where) if part is not None]
        return (tuple(bound), expr) if attempt.covers(expr, *arguments) else None

    def __getattr__(self, name: str) -> Any:
        raise QueryError(
            f"a window has no {name!r}; it has: {', '.join(['key', *builtin.BUILTINS, 'udm'])}",
            hint="use w.udm(MyUDA(), lambda e: ...) for your own aggregate",
        )

    def _take(self, function: AnyUDA[Any, Any], f: Any, where: Any) -> Any:
        self._bound.append(BoundAgg(function, counted(function, self._expression(f), self._schema), self._expression(where)))
        self._fields.append(Field(f"a{len(self._bound) - 1}"))
        return WindowE(self._fields[-1])

    def _expression(self, f: Any) -> Expr | None:
        if f is None:
            return None
        if isinstance(f, FunctionRef):
            return trace(f.held, (self._schema,))
        if isinstance(f, Udf) or type(f) is E:
            return trace(f, (self._schema,))
        if type(f) is not FunctionType or f.__globals__ is not self._copy.__globals__:
            refuse("an aggregate is taken of a lambda")
        return trace(self._original(f), (self._schema,))

    def _original(self, inner: FunctionType) -> FunctionType:
        """Return a lambda inside the window lambda with the actual values of its free names instead of the stand-ins."""
        defaults = (*(inner.__defaults__ or ()), *(inner.__kwdefaults__ or {}).values())
        if not all(map(is_constant, defaults)):
            refuse("a default of a lambda is not a constant")
        outer = dict(zip(self._function.__code__.co_freevars, self._function.__closure__ or (), strict=True))
        cells = tuple(outer[name] for name in inner.__code__.co_freevars)
        return with_environment(inner, self._function.__globals__, cells, inner.__defaults__, inner.__kwdefaults__)


class FunctionRef(StandIn):
    """The stand-in of a function that may be an aggregate's argument; a call of it ends the trace."""

    __slots__ = ()


class ModuleRef(StandIn):
    """The stand-in of a module, or of a class of modules, for `w.udm`; a class may be called with constants."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self.held, type) or not all(map(is_constant, (*args, *kwargs.values()))):
            refuse("only a module of constants is made in a trace")
        with recording_paused():
            return ModuleRef(self.held(*args, **kwargs))


def _stand_in(value: Any) -> Any:
    if isinstance(value, AnyUDA) or (isinstance(value, type) and issubclass(value, AnyUDA)):
        return ModuleRef(value)
    if is_package(value):
        return PackageStandIn(value, _stand_in)
    is_function = callable(value) and not isinstance(value, (type, E, Udf)) and all(value is not f for f in FUNCTIONS)
    return FunctionRef(value) if is_function else stand_in(value)


# Opaque window lambdas.


def _opaque(function: Callable[..., Any]) -> Aggregation:
    used = methods_used(function)
    kept, name = freeze_variables(function), name_of(function)
    kind = (
        OpaqueWindow if used is None or "udm" in used else OpaqueClippedWindow if "time_weighted_avg" in used else OpaquePayloads
    )
    if used is not None and "key" not in used:
        return (BoundAgg(kind(kept), Whole()),), Field("a0")
    return (BoundAgg(kind(_itself, name), Whole()),), Call(_WithKey(kept), (Field("a0"), Key()), f"opaque {name}")


def methods_used(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the attributes of its window that a lambda reads, or None if it uses the window in any other way.

    >>> sorted(methods_used(lambda w: w.count() if w.count() > 1 else w.max(lambda e: e.x)))
    ['count', 'max']
    """
    if type(function) is not FunctionType or function.__code__.co_argcount != 1:
        return None
    window = function.__code__.co_varnames[0]
    names: set[str] = set()
    for code in tree(function.__code__):
        for here, after in _pairs(code):
            if window not in _variables(here) or _is_handed_down(here, window, code):
                continue
            if not here.opname.startswith("LOAD_") or after is None or after.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                return None
            names.add(str(after.argval))
    return frozenset(names)


def _is_handed_down(instruction: dis.Instruction, variable: str, code: CodeType) -> bool:
    """Say whether an instruction only passes a variable to an inner function, since Python 3.13 by a LOAD_FAST of its cell."""
    is_cell = variable in code.co_cellvars or variable in code.co_freevars
    return instruction.opname in ("MAKE_CELL", "LOAD_CLOSURE") or (is_cell and instruction.opname.startswith("LOAD_FAST"))


def _pairs(code: CodeType) -> Iterator[tuple[dis.Instruction, dis.Instruction | None]]:
    found = list(dis.get_instructions(code))
    return zip(found, [*found[1:], None], strict=True)


def _variables(instruction: dis.Instruction) -> tuple[Any, ...]:
    if instruction.opcode not in dis.haslocal and instruction.opcode not in dis.hasfree:
        return ()
    return instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)


class OpaqueWindow(TimeSensitiveUDA[Any, Any]):
    """A window lambda that cannot be traced, as one aggregate of whole payloads; lifetimes are clipped by the query's `clip`."""

    is_opaque: ClassVar[bool] = True
    order_insensitive: ClassVar[bool] = False

    def __init__(self, function: Callable[[Any], Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or name_of(function)

    @property
    def label(self) -> str:
        """The lambda's name."""
        return f"opaque {self.name}"

    def compute_result(self, events: Sequence[Any], window: WindowDescriptor | None = None) -> Any:
        """Return the result of the lambda for a `RealWindow` over these events."""
        if window is None:
            events, window = [IntervalEvent(0, 1, payload) for payload in events], WindowDescriptor(0, 1)
        found = self.function(RealWindow(events, window))
        return evaluate_row(node_of(found), ()) if isinstance(found, E) else found


class OpaqueClippedWindow(OpaqueWindow):
    """An opaque window lambda that reads lifetimes only through `time_weighted_avg`."""

    always_clipped: ClassVar[bool] = True
    ignores_ends_beyond_window: ClassVar[bool] = True


class OpaquePayloads(OpaqueWindow):
    """An opaque window lambda that reads no lifetimes."""

    time_sensitive: ClassVar[bool] = False


class RealWindow(Aggregates):
    """The window with which an opaque window lambda is called: aggregates over actual rows in order of (LE, payload).

    >>> RealWindow([IntervalEvent(0, 2, 10), IntervalEvent(1, 3, 20)], WindowDescriptor(0, 10)).avg(lambda e: e)
    15.0
    """

    __slots__ = ("_events", "_window", "key")

    def __init__(self, events: Sequence[IntervalEvent[Any]], window: WindowDescriptor, key: Any = None) -> None:
        self._events = events
        self._window = window
        self.key = key

    def with_key(self, key: Any) -> RealWindow:
        """Return the same window with the key of its group."""
        return RealWindow(self._events, self._window, key)

    def _take(self, function: AnyUDA[Any, Any], f: Any, where: Any) -> Any:
        members = [self._member(position, event, function, f, where) for position, event in enumerate(self._events)]
        return aggregate(function, 0, members, Lifetime(*self._window), Clip.NONE)

    def _member(self, position: int, event: IntervalEvent[Any], function: AnyUDA[Any, Any], f: Any, where: Any) -> MemberRow:
        row = (event.payload,)
        kept = where is None or holds_row(_expression(where), row)
        given = BoundAgg(function, None if f is None else counted(function, _expression(f))).given
        argument = project_row(given, row) if kept else EXCLUDED
        # Clipped lifetimes no longer have the order of the events, so for time-insensitive modules positions replace them.
        life = (event.start_time, event.end_time) if function.time_sensitive else (position, position + 1)
        return MemberRow(*life, event.payload, (argument,))


def _expression(f: Any) -> Expr:
    return node_of(f) if isinstance(f, E) else Opaque(f, name=name_of(f))


def _itself(window: RealWindow) -> RealWindow:
    return window


@dataclass(frozen=True, slots=True)
class _WithKey:
    """An opaque window lambda that reads the group's key, which is known only where the window's result is projected."""

    function: Callable[[Any], Any]

    def __call__(self, window: RealWindow, key: Any) -> Any:
        found = self.function(window.with_key(key))
        return evaluate_row(node_of(found), (), key=key) if isinstance(found, E) else found
