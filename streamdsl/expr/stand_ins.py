"""Stand-ins for the free names of a lambda while it is traced: constants, constructors, the functions of expressions."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import CellType, FunctionType
from typing import Any, Final

from streamdsl.expr.bytecode import global_names
from streamdsl.expr.closures import with_environment
from streamdsl.expr.expression_functions import FUNCTIONS, CastType, Udf
from streamdsl.expr.facade import E
from streamdsl.expr.immutable import is_constant
from streamdsl.expr.nodes import Make
from streamdsl.expr.proxies import BuiltPayload, argument_node, is_value
from streamdsl.expr.recording import StandIn, SymbolicValue, refuse
from streamdsl.expr.scalar_functions import CASTS
from streamdsl.expr.schema import Schema, is_plain_class
from streamdsl.temporal.payload import Record

_PACKAGES: Final = ("streamdsl", "streamdsl.functions", "streamdsl.expr.expression_functions")
_CONSTANT_CLASSES: Final = frozenset({datetime, date, time, timedelta, Decimal, Fraction})


class ClassStandIn(StandIn):
    """The stand-in of a plain class: a call builds a payload of expressions."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        schema = Schema.of_type(self.held)
        assert schema is not None
        given = inspect.signature(self.held).bind(*args, **kwargs).arguments
        values = tuple(given[name] if name in given else default_of(self.held, name) for name in schema.names)
        return BuiltPayload(Make(schema, tuple(map(argument_node, values))), is_value(values))


def default_of(cls: type, name: str) -> Any:
    """Return a field's default if it is a constant."""
    if dataclasses.is_dataclass(cls):
        value: Any = next(f.default for f in dataclasses.fields(cls) if f.name == name)
    else:
        value = getattr(cls, "_field_defaults", {})[name]
    return value if is_constant(value) else refuse(f"the default of {cls.__name__}.{name} is made anew for each payload")


class RecordStandIn(SymbolicValue):
    """The stand-in of `sd.Record`: a call builds a record of expressions."""

    __slots__ = ()

    def __call__(self, *args: Any, **fields: Any) -> Any:
        if args:
            refuse("a traced Record is made of named fields")
        values = tuple(fields.values())
        return BuiltPayload(Make(Schema.record(tuple(fields)), tuple(map(argument_node, values))), is_value(values))


class ConstantClassStandIn(StandIn):
    """The stand-in of a class of constants, such as `datetime`: a call with constants makes one."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not all(map(is_constant, (*args, *kwargs.values()))):
            refuse("only a constant is made of constants")
        return self.held(*args, **kwargs)


class PackageStandIn(SymbolicValue):
    """The stand-in of the module `streamdsl`, or of one with expression functions: its attributes are stand-ins too."""

    __slots__ = ("_module", "_stand_in")

    def __init__(self, module: Any, stand_in: Callable[[Any], Any]) -> None:
        self._module = module
        self._stand_in = stand_in

    def __getattr__(self, name: str) -> Any:
        return self._stand_in(getattr(self._module, name))


def stand_in(value: Any) -> Any:
    """Return the stand-in of a free name's value; raises `NotTraceable` for values with which a trace could be unfaithful."""
    if is_constant(value) or type(value) is E or isinstance(value, Udf) or any(value is f for f in FUNCTIONS):
        return value
    if is_package(value):
        return PackageStandIn(value, stand_in)
    if isinstance(value, type) and value in CASTS:
        return CastType(value)
    if value is Record:
        return RecordStandIn()
    if isinstance(value, type) and value in _CONSTANT_CLASSES:
        return ConstantClassStandIn(value)
    if isinstance(value, type) and is_plain_class(value):
        return ClassStandIn(value)
    return refuse(f"{type(value).__name__} objects may change, or do what a trace does not show")


def is_package(value: object) -> bool:
    """Say whether a value is the module `streamdsl`, or one that has the functions of expressions."""
    return any(value is sys.modules.get(name) for name in _PACKAGES)


def with_stand_ins(function: FunctionType, replace: Callable[[Any], Any] = stand_in) -> FunctionType:
    """Return the function over stand-ins of all its free names and defaults."""
    names = {name: replace(_global(function, name)) for name in global_names(function.__code__)}
    cells = [replace(cell.cell_contents) for cell in function.__closure__ or ()]
    defaults = tuple(map(replace, function.__defaults__ or ()))
    by_name = {name: replace(value) for name, value in (function.__kwdefaults__ or {}).items()}
    environment = {"__builtins__": {}, "__name__": function.__module__, **names}
    return with_environment(function, environment, tuple(map(CellType, cells)), defaults, by_name)


def _global(function: FunctionType, name: str) -> Any:
    names = function.__globals__
    return names[name] if name in names else getattr(function, "__builtins__")[name]  # noqa: B009
