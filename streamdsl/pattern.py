"""Patterns: `p.a.then(p.b.many()).then(p.c).within("5m")`, where `p` is the argument of the lambda of `Stream.match`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, overload

from typing_extensions import TypeVar

from streamdsl import building
from streamdsl.errors import QueryError
from streamdsl.expr.facade import E
from streamdsl.expr.predicates import check_function
from streamdsl.expr.schema import Schema
from streamdsl.plan.pattern_steps import PatternStep

if TYPE_CHECKING:
    from streamdsl.temporal import DurationLike, Record

T = TypeVar("T", covariant=True)

__all__ = ["Pattern", "Step", "Steps"]


@dataclass(frozen=True, slots=True, eq=False)
class Pattern(Generic[T]):
    """A sequence of steps; immutable, each method returns a new pattern.

    >>> import streamdsl as sd
    >>> def up_down(p: sd.pattern.Steps[int]) -> sd.pattern.Pattern[int]:
    ...     return p.low.then(p.high.where(lambda e, m: e > m.low)).within(5)
    >>> sd.from_rows([(1, 2, 10), (4, 5, 30)]).match(up_down).run().cht()
    CHT
      [4, 6) low=10 high=30
    """

    _steps: tuple[Step[T], ...] = ()
    _unless: tuple[Step[T], ...] = ()
    _within: DurationLike | None = None

    def then(self, following: Pattern[Any]) -> Pattern[T]:
        """Return the pattern followed by another one, whose first event starts after the last event of this one.

        >>> import streamdsl as sd
        >>> rows = sd.from_rows([(1, 2, "a"), (1, 2, "b"), (4, 5, "c")])
        >>> rows.match(lambda p: p.first.then(p.second).within(5)).run().cht()
        CHT
          [4, 6) first='a' second='c'
        """
        _check_pattern(following, "then")
        if self._bounded or _parts(following)._bounded:
            raise QueryError("then comes before within and unless", hint="for example p.a.then(p.b).then(p.c).within(10)")
        return Pattern((*_parts(self)._steps, *_parts(following)._steps))

    def within(self, duration: DurationLike) -> Pattern[T]:
        """Return the pattern with less than a duration between the LEs of its first event and its last.

        Every pattern needs it: it bounds the lifetime of a match, and how long rows are kept. The duration is in ticks, or with a
        calendar unit any duration, such as "5m".

        >>> import streamdsl as sd
        >>> rows = sd.from_rows([(1, 2, "a"), (6, 7, "b"), (9, 10, "c")])
        >>> rows.match(lambda p: p.first.then(p.second).within(5)).run().cht()
        CHT
          [9, 11) first='b' second='c'
        """
        if self._within is not None:
            raise QueryError(f"the pattern has a within already: {self._within!r}")
        return replace(_parts(self), _within=duration)

    def unless(self, event: Step[Any]) -> Pattern[T]:
        """Return the pattern without matches that have an event satisfying this step between their first and last LE.

        An event that starts with the last one is not between. The step's predicates may read the events that were taken before.

        >>> import streamdsl as sd
        >>> numbers = sd.from_rows([(1, 2, 5), (3, 4, 0), (4, 5, 6), (7, 8, 9)])
        >>> numbers.match(
        ...     lambda p: p.a.where(lambda e: e > 0).then(p.b.where(lambda e: e == 9))
        ...     .unless(p.x.where(lambda e: e == 0))
        ...     .within(10)
        ... ).run().cht()
        CHT
          [7, 14) a=6 b=9
        """
        if not isinstance(event, Step):
            raise QueryError(
                f"unless takes one step, not {event!r}", hint="for example unless(p.x.where(lambda e: e.kind == 'x'))"
            )
        if event._many or event._optional:
            raise QueryError("a step of unless is neither many nor optional: one event is enough")
        return replace(_parts(self), _unless=(*self._unless, event))

    @property
    def _bounded(self) -> bool:
        return self._within is not None or bool(self._unless)


@dataclass(frozen=True, slots=True, eq=False)
class Step(Pattern[T]):
    """A step of a pattern: takes one event, by default any; with `many` one or more, with `optional` possibly none.

    >>> import streamdsl as sd
    >>> rows = sd.from_rows([(1, 2, 10), (2, 3, 8), (4, 5, 7), (6, 7, 12)])
    >>> fall_and_rise = rows.match(
    ...     lambda p: p.top.then(p.low.many().where(lambda e, m: e < m.top)).then(p.back).within(10)
    ... )
    >>> fall_and_rise.run().cht()
    CHT
      [4, 11) top=10 low=(8,) back=7
    """

    _name: str = ""
    _where: tuple[Callable[..., object], ...] = ()
    _many: bool = False
    _optional: bool = False

    @overload
    def where(self, predicate: Callable[[T], object]) -> Step[T]: ...
    @overload
    def where(self, predicate: Callable[[T, Record], object]) -> Step[T]: ...
    def where(self, predicate: Any) -> Any:
        """Return the step for events that satisfy this predicate, too.

        It is a lambda over the event, or over the event and a record of the events taken so far: for each step the payload, None
        if there is none yet; for a many step a tuple of payloads, the latest last. Several predicates must all be true; those
        over earlier events are evaluated only if those over the event alone are true.

        >>> import streamdsl as sd
        >>> rows = sd.from_rows([(1, 2, 10), (2, 3, 8), (4, 5, 12)])
        >>> rows.match(lambda p: p.a.then(p.b.where(lambda e, m: e > m.a)).within(10)).run().cht()
        CHT
          [4, 11) a=10 b=12
        """
        if not callable(predicate):
            building.row_expression(predicate, None)
        return replace(self, _where=(*self._where, predicate))

    def many(self) -> Step[T]:
        """Return the step for one or more events: all of an instant, and further ones until a later step takes one.

        >>> import streamdsl as sd
        >>> rows = sd.from_rows([(1, 2, 1), (2, 3, 1), (2, 3, 1), (3, 4, 9)])
        >>> ones = rows.match(lambda p: p.a.many().where(lambda e: e == 1).then(p.b.where(lambda e: e > 1)).within(5))
        >>> ones.run().cht()
        CHT
          [3, 6) a=(1, 1, 1) b=9
        """
        return replace(self, _many=True)

    def optional(self) -> Step[T]:
        """Return the step for an event that may be missing; with `many`, for any number of events.

        >>> import streamdsl as sd
        >>> rows = sd.from_rows([(1, 2, 1), (3, 4, 9)])
        >>> rows.match(lambda p: p.a.then(p.b.optional().where(lambda e: e < 9)).then(p.c).within(5)).run().cht()
        CHT
          [3, 6) a=1 b=None c=9
        """
        return replace(self, _optional=True)


class Steps(Generic[T]):
    """The argument of the lambda of `Stream.match`: every attribute, and every item, is a step of that name.

    >>> import streamdsl as sd
    >>> sd.from_rows([(1, 2, "a"), (3, 4, "b")]).match(lambda p: p["from"].then(p.to).within(5)).run().cht()
    CHT
      [3, 6) from='a' to='b'
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Step[T]:
        if name.startswith("_"):
            raise AttributeError(f"a step's name does not begin with an underscore: {name!r}")
        return Step(_name=name)

    def __getitem__(self, name: str) -> Step[T]:
        return Step(_name=name)


def _parts(pattern: Pattern[T]) -> Pattern[T]:
    """Return a pattern as a sequence of steps: a single step becomes a sequence of one."""
    return Pattern((pattern,), pattern._unless, pattern._within) if isinstance(pattern, Step) else pattern


def _check_pattern(value: object, where: str) -> None:
    if not isinstance(value, Pattern):
        raise QueryError(
            f"{where} takes a pattern, not {value!r}", hint="for example lambda p: p.a.then(p.b.many()).then(p.c).within(10)"
        )


@dataclass(frozen=True, slots=True)
class Traced:
    """A pattern with its predicates traced to expressions."""

    steps: tuple[PatternStep, ...]
    unless: tuple[PatternStep, ...]
    within: DurationLike


def traced(write: Callable[[Steps[Any]], Pattern[Any]], schema: Schema | None) -> Traced:
    """Return the traced pattern of a lambda; raises `QueryError` if it is invalid, and `FieldNotFound` for an unknown step.

    >>> traced(lambda p: p.a.then(p.b.many()), None)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the pattern a then b+ has no within, so nothing says when to give up waiting
    Hint: for example p.a.then(p.b).within("5m")
    """
    if not callable(write):
        raise QueryError(f"match takes a lambda, not {write!r}", hint="for example match(lambda p: p.a.then(p.b).within(10))")
    check_function(write, "the steps", instead="return the pattern")
    written = write(Steps())
    _check_pattern(written, "match")
    pattern = _parts(written)
    names = Schema.record([step._name for step in pattern._steps])
    steps = tuple(_traced(step, schema, names) for step in pattern._steps)
    if pattern._within is None:
        raise QueryError(
            f"the pattern {' then '.join(map(str, steps))} has no within, so nothing says when to give up waiting",
            hint='for example p.a.then(p.b).within("5m")',
        )
    return Traced(steps, tuple(_traced(step, schema, names) for step in pattern._unless), pattern._within)


def _traced(step: Step[Any], schema: Schema | None, names: Schema) -> PatternStep:
    over = [_is_over_earlier(predicate) for predicate in step._where]
    tests = (building.row_expression(f, schema, life=False) for f, both in zip(step._where, over, strict=True) if not both)
    on_both = (building.expression(f, schema, names) for f, both in zip(step._where, over, strict=True) if both)
    return PatternStep(step._name, tuple(tests), tuple(on_both), step._many, step._optional)


def _is_over_earlier(predicate: Callable[..., object]) -> bool:
    """Say whether a predicate takes the earlier events as its second argument."""
    if isinstance(predicate, E):
        return False
    try:
        parameters = inspect.signature(predicate).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters) == 2
