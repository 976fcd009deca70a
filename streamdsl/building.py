"""Translation of the arguments of stream methods to parts of plans: expressions, keys, matchings, aggregates, group bodies.

The facade (`stream.py`) has the methods; these functions validate, so that a query is refused where it is written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from streamdsl.errors import FieldNotFound, QueryError, WindowGapsWarning, level_of_caller
from streamdsl.expr.expression_functions import Then, When
from streamdsl.expr.facade import E
from streamdsl.expr.nodes import Attribute, Call, Constant, Expr, Field, Key, Make, Opaque, Whole
from streamdsl.expr.predicates import check_function
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.tracing import trace
from streamdsl.plan import derived
from streamdsl.plan.node import Group, Matching, Node, Source, WindowAggregate, WindowApply
from streamdsl.plan.units import in_unit
from streamdsl.temporal import Lifetime, Unit, to_duration, to_ticks
from streamdsl.temporal.payload import is_taken
from streamdsl.temporal.time import add_time
from streamdsl.udm.bases import Agg, AnyUDA, AnyUDO
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.counted_values import counted
from streamdsl.udm.stream_operator import UDSO
from streamdsl.windows import Clip, Output, Windows, check_policies
from streamdsl.windows.liveliness import output_cti

F = TypeVar("F")

if TYPE_CHECKING:
    from streamdsl.io.binding import Bound

PAIR: Final = Make(Schema.tuple(2), (Key(), Whole()))
"""The payload `(key, result)`."""


def expression(f: object, *schemas: Schema | None, life: bool = False) -> Expr:
    """Return the expression of a lambda, or of an expression written with `sd.col`."""
    return trace(f, schemas, life=life)


def row_expression(f: object, schema: Schema | None, life: bool = True, yields: bool = False) -> Expr:
    """Return the expression over a row; raises `QueryError` for a plain value, which does not depend on rows.

    >>> row_expression("fare", None)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: 'fare' is not an expression over a row
    Hint: write lambda e: ..., or sd.col('fare') for a field, sd.lit('fare') for a constant
    """
    if not callable(f):
        raise QueryError(f"{f!r} is not an expression over a row", hint=_to_write(f))
    return trace(f, (schema,), life=life, yields=yields)


def _to_write(f: object, name: str = "") -> str:
    """Return the hint for a plain value in place of an expression."""
    if isinstance(f, (When, Then)):
        return "end it: sd.when(condition).then(value).otherwise(value)"
    field = f"{name}sd.col({f!r}) for a field, " if isinstance(f, str) else ""
    return f"write {name}lambda e: ..., or {field}{name}sd.lit({f!r}) for a constant"


def constant(payload: Any, like: Schema | None = None) -> Expr:
    """Return the constant expression of a payload, with its fields in the order of `like` if that has the same ones.

    >>> constant({"n": 0})
    Make(schema=Schema(n), values=(Constant(value=0),))
    """
    schema = Schema.of_payload(payload)
    if like is not None and schema.shape is Shape.RECORD is like.shape and set(schema.names) == set(like.names):
        schema = like
    if schema.shape in (Shape.SCALAR, Shape.OBJECT):
        return Constant(payload)
    return Make(schema, tuple(map(Constant, schema.values(payload))))


def record(fields: Mapping[str, object], schema: Schema | None) -> Make:
    """Return the projection to a record with these fields.

    >>> record({"a": "x"}, None)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the field a='x' is not an expression
    Hint: write a=lambda e: ..., or a=sd.col('x') for a field, a=sd.lit('x') for a constant
    """
    for name, f in fields.items():
        if not callable(f):
            raise QueryError(f"the field {name}={f!r} is not an expression", hint=_to_write(f, f"{name}="))
    return Make(Schema.record(tuple(fields)), tuple(expression(f, schema, life=True) for f in fields.values()))


def field(name: str, schema: Schema | None) -> Field:
    """Return the expression of a field; raises `FieldNotFound` if the schema is known and lacks it.

    >>> field("fare", Schema.record(["zone", "fare"]))
    Field(name='fare', side=0)
    """
    if schema is not None and schema.names and name not in schema.names:
        raise FieldNotFound(name, schema.names)
    return Field(name)


def is_names(value: object) -> bool:
    """Say whether a value is a non-empty list of names."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(name, str) for name in value)


def key(by: Any, schema: Schema | None) -> Expr:
    """Return the expression of a key: a lambda, a field name, or a list of names, which makes a record.

    >>> key(["zone", "day"], None).schema
    Schema(zone, day)
    """
    if isinstance(by, str):
        return field(by, schema)
    if is_names(by):
        return Make(Schema.record(by), tuple(field(name, schema) for name in by))
    if not callable(by):
        raise QueryError(
            f"{by!r} is not a key", hint='a key is a lambda, a field name, or a list of names: group_by(["zone", "day"])'
        )
    return expression(by, schema)


def matching(on: Any, where: Any, left: Schema | None, right: Schema | None) -> Matching:
    """Return the matching of a join; `on` is a field name, a list of names, a pair of lambdas, or None."""
    left_key, right_key = (None, None) if on is None else _join_keys(on, left, right)
    return Matching(left_key, right_key, None if where is None else expression(where, left, right))


def _join_keys(on: Any, left: Schema | None, right: Schema | None) -> tuple[Expr, Expr]:
    if isinstance(on, str):
        return field(on, left), field(on, right)
    if is_names(on):
        return _tuple(on, left), _tuple(on, right)
    if isinstance(on, (tuple, list)) and len(on) == 2 and all(map(callable, on)):
        return expression(on[0], left), expression(on[1], right)
    raise QueryError(
        f"on={on!r} does not say which rows match",
        hint="on is a field name, a list of names, or a pair of lambdas: on=(lambda l: l.zone, lambda r: r.pickup); "
        "a condition over both rows is where=lambda l, r: ...",
    )


def _tuple(names: Sequence[str], schema: Schema | None) -> Make:
    return Make(Schema.tuple(len(names)), tuple(field(name, schema) for name in names))


def duration(value: object, schema: Schema | None, unit: Unit | None) -> Expr:
    """Return the expression of a duration: a constant, or a function of the row and its lifetime.

    >>> duration("5s", None, "ms")
    Constant(value=5000)
    """
    return _in_ticks(to_duration, value, schema, unit)


def start(value: object, schema: Schema | None, unit: Unit | None) -> Expr:
    """Return the expression of an LE: a constant, or a function of the row and its lifetime.

    >>> start("1970-01-01T00:00:02", None, "ms")
    Constant(value=2000)
    """
    return _in_ticks(to_ticks, value, schema, unit)


def _in_ticks(read: Callable[[object, Unit | None], int], value: object, schema: Schema | None, unit: Unit | None) -> Expr:
    found = expression(value, schema, life=True) if callable(value) else Constant(value)
    return Constant(read(found.value, unit)) if isinstance(found, Constant) and (unit or not callable(value)) else found


Form: TypeAlias = Literal["one", "named", "window"]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The arguments of `aggregate`: the aggregates, the projection of their results, and the form of the call."""

    aggregates: tuple[BoundAgg, ...]
    projection: Expr
    form: Form

    names: tuple[str, ...] = ()

    def as_class(self, cls: type) -> Aggregation:
        """Return the aggregation with the aggregates as fields of a class."""
        return replace(self, projection=to_class(cls, {name: Field(f"a{i}") for i, name in enumerate(self.names)}))

    def with_key(self, key: Expr, cls: type | None = None, in_order: bool = False) -> Expr:
        """Return the projection to the group's key and this aggregation's results, as a class or a record.

        With `in_order` the parts of the key are the first fields of the class, whatever they are called.

        >>> from streamdsl.udm.builtin import Count
        >>> aggregation(None, None, {"n": Agg(Count())}, None).with_key(Field("zone")).schema
        Schema(zone, n)
        """
        if self.form != "named":
            return PAIR if self.form == "one" else Whole()
        parts = key_parts(key)
        if cls is not None and in_order:
            parts = dict(zip(_fields_of(cls).names, parts.values(), strict=False))
        for name in self.names:
            if name in parts:
                raise QueryError(
                    f"the aggregate {name!r} has the name of the group's key",
                    hint="rename the aggregate, or name the key: group_by(lambda e: {'zone': e.zone})",
                )
        parts |= {name: Field(name) for name in self.names}
        return Make(Schema.record(tuple(parts)), tuple(parts.values())) if cls is None else to_class(cls, parts)


def aggregation(query: object, f: object, named: Mapping[str, object], schema: Schema | None) -> Aggregation:
    """Return the aggregation for the arguments of `aggregate`; raises `QueryError` if they match none of its forms."""
    if query is None:
        return named_aggregation(named, schema)
    if named:
        raise QueryError(
            f"aggregate got {query!r} and the names {', '.join(named)}",
            hint="either one aggregate, or named ones: aggregate(n=sd.count(), m=Median().of(lambda e: e.fare))",
        )
    if isinstance(query, Agg):
        if f is not None:
            raise QueryError("several aggregates are given without names", hint="write aggregate(n=sd.count(), mean=sd.avg(...))")
        return Aggregation((bind(query, schema),), Field("a0"), "one")
    if _is_module(query, AnyUDA):
        return Aggregation((BoundAgg(instance(query, AnyUDA), argument(f, schema)),), Field("a0"), "one")
    return _window_aggregation(query, f, schema)


def _window_aggregation(query: object, f: object, schema: Schema | None) -> Aggregation:
    if getattr(query, "__module__", None) == "streamdsl.aggregates":
        name = getattr(query, "__name__", "count")
        raise QueryError(f"sd.{name} is not called yet", hint=f"write aggregate(n=sd.{name}(...)), or lambda w: w.{name}(...)")
    if isinstance(query, type) or not callable(query) or f is not None:
        raise QueryError(
            f"{query!r} is not an aggregate",
            hint="aggregate takes a UDA, lambda w: ..., or names: aggregate(n=sd.count())",
        )
    from streamdsl.udm.window_lambda import trace_window

    aggregates, projection = trace_window(query, schema)
    return Aggregation(aggregates, projection, "window")


def without_key(made: Aggregation, input: Node) -> Aggregation:
    """Return an aggregation without groups; raises `QueryError` if its window lambda reads the group's key."""
    parts = list(made.projection.walk())
    inside_calls = {id(argument) for part in parts if isinstance(part, Call) for argument in part.arguments}
    asked = any(isinstance(part, Key) and id(part) not in inside_calls for part in parts)
    if asked and input.level < 0:
        raise QueryError(
            "w.key is the key of a group, and the stream is not grouped", hint="write group_by(...) before the window"
        )
    return made


def named_aggregation(named: Mapping[str, object], schema: Schema | None) -> Aggregation:
    """Return the aggregation to a record of named aggregates."""
    if not named:
        raise QueryError("aggregate needs at least one aggregate", hint="for example aggregate(n=sd.count())")
    for name, agg in named.items():
        if not isinstance(agg, Agg):
            raise QueryError(f"{name}={agg!r} is not an aggregate", hint=_agg_hint(name, agg))
    bound = tuple(bind(agg, schema) for agg in named.values() if isinstance(agg, Agg))
    fields = tuple(Field(f"a{i}") for i in range(len(bound)))
    return Aggregation(bound, Make(Schema.record(tuple(named)), fields), "named", tuple(named))


def fields_in_order(cls: type, given: Sequence[object], named: Mapping[str, object], n_key: int = 0) -> Mapping[str, object]:
    """Return aggregates by the names of the fields of a class: as they are named, or those after the key's in their order.

    >>> from typing import NamedTuple
    >>> class Stats(NamedTuple):
    ...     zone: str
    ...     n: int
    >>> fields_in_order(Stats, ["count"], {}, n_key=1)
    {'n': 'count'}
    """
    if not given:
        return named
    fields = _fields_of(cls).names
    if named or len(fields) != n_key + len(given):
        parts = [f"{n_key} of the key"] * (n_key > 0) + [f"{len(given)} in order"] + [f"{len(named)} by name"] * bool(named)
        raise QueryError(
            f"{cls.__name__} has {len(fields)} fields ({', '.join(fields)}), and is given {', '.join(parts)}",
            hint="all in the order of the class, or all by name: aggregate_as(Stats, n=sd.count())",
        )
    return dict(zip(fields[n_key:], given, strict=True))


def _agg_hint(name: str, value: Any) -> str:
    if _is_module(value, AnyUDA):
        shown = f"{value.__name__}()" if isinstance(value, type) else value.label
        shown += "(...)" if shown == type(value).__name__ else ""
        return f"give it an argument: {name}={shown}.of(lambda e: ...)"
    return f"for example {name}=sd.count(), {name}=sd.avg(lambda e: ...), {name}=MyUDA().of(lambda e: ...)"


def bind(agg: Agg[Any, Any], schema: Schema | None) -> BoundAgg:
    """Return an aggregate with its expressions traced over a stream."""
    found = argument(agg.argument, schema)
    if not isinstance(agg.argument, E):  # of which `sd.count` has asked, and SQL has a meaning of its own
        found = counted(agg.function, found, schema)
    return BoundAgg(agg.function, found, argument(agg.where, schema))


def argument(f: object, schema: Schema | None) -> Expr | None:
    """Return the expression of a module's argument; None means whole payloads."""
    return None if f is None else row_expression(f, schema, life=False)


def instance(module: Any, base: type) -> Any:
    """Return a module; a class is instantiated, without arguments.

    >>> from streamdsl.udm.builtin import Median, Quantile
    >>> instance(Median, AnyUDA).label
    'median'
    >>> instance(Quantile, AnyUDA)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: Quantile cannot be made without arguments
    Hint: give an instance: Quantile(...)
    """
    if not isinstance(module, type):
        return module
    try:
        return module()
    except TypeError as error:
        raise QueryError(
            f"{module.__name__} cannot be made without arguments", hint=f"give an instance: {module.__name__}(...)"
        ) from error


def operator(module: object) -> AnyUDO[Any, Any]:
    """Return the UDO for `apply`; raises `QueryError` for a value that is not a UDO."""
    if not _is_module(module, AnyUDO):
        hint = (
            "a UDA goes into aggregate(...)"
            if _is_module(module, AnyUDA)
            else "derive from sd.UDO, or decorate a function with @sd.udo"
        )
        raise QueryError(f"apply takes a user-defined operator, not {module!r}", hint=hint)
    found: AnyUDO[Any, Any] = instance(module, AnyUDO)
    return found


def stream_operator(module: object) -> UDSO[Any, Any, Any]:
    """Return the stream operator for `scan`; raises `QueryError` for a value that is not one."""
    if not _is_module(module, UDSO):
        raise QueryError(
            f"scan takes a stream operator, not {module!r}", hint="derive from streamdsl.udm.UDSO; a UDO goes into .apply(...)"
        )
    found: UDSO[Any, Any, Any] = instance(module, UDSO)
    return found


def _is_module(value: object, base: type) -> bool:
    return isinstance(value, base) or (isinstance(value, type) and issubclass(value, base))


def key_parts(key: Expr) -> dict[str, Expr]:
    """Return the record fields of a key by name, as expressions over `Key()`.

    An opaque lambda whose trace was recorded has the names of that trace.

    >>> key_parts(Field("zone")), list(key_parts(Make(Schema.record(["a", "b"]), (Field("x"), Field("y")))))
    ({'zone': Key()}, ['a', 'b'])
    """
    if isinstance(key, Opaque) and key.recorded is not None:
        return key_parts(key.recorded)
    if isinstance(key, Field):
        return {key.name: Key()}
    if isinstance(key, Make) and key.schema.shape in (Shape.RECORD, Shape.CLASS):
        items = {name for name in key.schema.names if key.schema.shape is Shape.RECORD and is_taken(name)}
        return {name: _item(name) if name in items else Attribute(Key(), name) for name in key.schema.names}
    return {"key": Key()}


def _item(name: str) -> Expr:
    """Return the expression of a record key's field that attribute access does not reach, such as `items`."""
    return Call(itemgetter(name), (Key(),), name)


def _fields_of(cls: type) -> Schema:
    """Return the schema of the class of results; raises `QueryError` for one that is no dataclass or named tuple."""
    schema = Schema.of_type(cls)
    if schema is None or schema.shape is Shape.SCALAR:
        raise QueryError(
            f"aggregate_as makes a dataclass or a NamedTuple, and {cls!r} is neither", hint="aggregate_as(Stats, n=sd.count())"
        )
    return schema


def to_class(cls: type, parts: Mapping[str, Expr]) -> Expr:
    """Return the projection to a class with these fields; raises `QueryError` if they are not the fields of the class."""
    schema = _fields_of(cls)
    missing = [name for name in schema.names if name not in parts]
    unknown = [name for name in parts if name not in schema.names]
    if missing or unknown:
        said = [f"{what}: {', '.join(names)}" for what, names in (("missing", missing), ("unknown", unknown)) if names]
        raise QueryError(
            f"the names do not fit {cls.__name__}({', '.join(schema.names)}); {'; '.join(said)}",
            hint="every field is the name of an aggregate, or of the group's key",
        )
    values = tuple(parts[name] for name in schema.names)
    return Make(schema, values) if schema.shape is not Shape.OBJECT else Call(_Maker(cls, schema.names), values, cls.__name__)


@dataclass(frozen=True, slots=True)
class _Maker:
    """A function that makes instances of a class whose constructor runs user code; picklable."""

    cls: type
    names: tuple[str, ...]

    def __call__(self, *values: object) -> object:
        return self.cls(**dict(zip(self.names, values, strict=True)))


@dataclass(frozen=True, slots=True)
class WindowDefinition:
    """Windows with their policies, before an aggregation or an operator is applied to them.

    `lasting` is the lifetime of results from the end of their window on; None: the policy `output` determines it.
    """

    windows: Windows
    clip: Clip
    output: Output
    lasting: int | None = None

    def __post_init__(self) -> None:
        check_policies(self.clip, self.output)
        self.windows.check_use(self.output)

    def aggregate(self, input: Node, made: Aggregation) -> Node:
        """Return the plan of an aggregation over these windows."""
        return self._placed(WindowAggregate(input, self.windows, self.clip, self.output, made.aggregates, made.projection))

    def operate(self, input: Node, module: AnyUDO[Any, Any], argument: Expr | None) -> Node:
        """Return the plan of an operator over these windows."""
        return self._placed(WindowApply(input, self.windows, self.clip, self.output, module, argument))

    def output_cti(self, lifetimes: Sequence[Lifetime], cti: int, time_sensitive: bool) -> int | None:
        """Return the output CTI after an input with these lifetimes and `Cti(cti)`; None if there is none yet."""
        found = output_cti(self.windows, self.clip, self.output, time_sensitive, lifetimes, cti)
        return found if found is None or self.lasting is None else add_time(found, self._delay)

    @property
    def _delay(self) -> int:
        return self.windows.fixed_size or 0

    def _placed(self, results: Node) -> Node:
        return results if self.lasting is None else derived.lasting(results, self._delay, self.lasting)


def warn_of_gaps(size: object, hop: object) -> None:
    """Warn, at the line of the query, that hopping windows leave times out."""
    warnings.warn(
        f"hopping_window({size!r}, {hop!r}) leaves gaps: a window of size {size!r} begins every {hop!r}, and a row that lives "
        "between two of them is in none.\n"
        f"Hint: the size comes first: hopping_window({hop!r}, {size!r}); if the gaps are meant, "
        'warnings.simplefilter("ignore", streamdsl.errors.WindowGapsWarning)',
        WindowGapsWarning,
        stacklevel=level_of_caller(),
    )


def merge_bindings(plan: Node, *parts: Mapping[str, Bound]) -> dict[str, Bound]:
    """Return the merged bindings of a plan's streams; raises `QueryError` if two different sources have one name."""
    named: dict[str, Source] = {}
    for node in plan.leaves:
        if isinstance(node, Source) and named.setdefault(node.source, node) != node:
            raise QueryError(
                f"two different sources of this query are called {node.source!r}",
                hint="give them different names, or use one sd.source(...) object for both",
            )
    return {name: bound for part in parts for name, bound in part.items()}


def group_of(node: Node) -> Group:
    """Return the group of a `group_by` over `node`: one level deeper than the groups that `node` reads.

    >>> group_of(Group(None, "s", 0)).level
    1
    """
    return Group(node.schema, node.unit, node.level + 1)


def check_body(body: Node, group: Group) -> Node:
    """Return the plan of a group's sub-query; raises `QueryError` if it reads anything but its group."""
    for leaf in body.leaves:
        if leaf is group or (group.unit is None and leaf == in_unit(group, leaf.unit)):
            continue
        outside = f"the stream {leaf.source!r}" if isinstance(leaf, Source) else "the rows of another group"
        raise QueryError(
            f"the query inside group_by(...).apply(...) reads {outside}, which is not part of its group",
            hint="build it from the lambda's own parameter: apply(lambda g: g.where(...)); "
            "join the other stream before group_by, or after apply",
        )
    return body


def callable_given(given: F, method: str, example: str) -> F:
    """Return a function that builds a query; raises `QueryError` if it is not callable, or returns no query."""
    if not callable(given):
        raise QueryError(f"{method} takes a lambda, not {given!r}", hint=f"for example {example}")
    check_function(given, "a stream", instead=f"return the query, for example {example}")
    return given
