"""The repository: modules by name, so that query writers need not know where modules come from (paper 001, section I).

A name stands for a module that the program has registered; else for one that an installed distribution provides by an entry point
of the group `streamdsl.udms`, or for a built-in aggregate. Entry points are listed at the first use of the repository, and loaded
when they are used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, overload

from typing_extensions import TypeVar

from streamdsl.errors import QueryError, closest
from streamdsl.expr.expression_functions import Udf
from streamdsl.udm import builtin
from streamdsl.udm.bases import Agg, AnyUDA, AnyUDO
from streamdsl.udm.function_modules import FunctionModule
from streamdsl.udm.listing import Catalog, Entry, entry_of, kind_of
from streamdsl.udm.signatures import parameters as parameters_of
from streamdsl.udm.stream_operator import UDSO

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "streamdsl.udms"
"""The group of entry points through which distributions provide modules: `name = "package.module:object"`."""

OWN: Final = "this program"
BUILT_IN: Final = "streamdsl"

Made: TypeAlias = AnyUDA[Any, Any] | AnyUDO[Any, Any] | UDSO[Any, Any, Any]
Module: TypeAlias = Made | type[AnyUDA[Any, Any]] | type[AnyUDO[Any, Any]] | type[UDSO[Any, Any, Any]] | Udf[..., Any]
T = TypeVar("T", default=Any)
M = TypeVar("M", bound=Module)
_TAKES: Final = {"int": "object", "float": "float"}
"""What built-in aggregates take, by what they give: as `streamdsl.aggregates` says."""


class Offer(NamedTuple):
    """A module that is provided under a name, perhaps not loaded yet; `signature` replaces that of its annotations."""

    origin: str
    path: str
    load: Callable[[], Module]
    signature: str | None = None

    def __str__(self) -> str:
        return f"{self.origin} ({self.path})"


class Repository:
    """Modules by name: `sd.udm("median", lambda e: e.x)`.

    >>> from streamdsl.udm.bases import UDA
    >>> udm = Repository()
    >>> @udm.register("range")
    ... class Range(UDA[float, float]):
    ...     def compute_result(self, payloads):
    ...         return max(payloads) - min(payloads)
    >>> udm("range", lambda e: e.fare).function.compute_result([3.0, 1.0, 7.0])
    6.0
    """

    def __init__(self) -> None:
        self._registered: dict[str, Offer] = {}

    def __call__(
        self,
        name: str,
        f: Callable[[T], object] | None = None,
        /,
        *,
        where: Callable[[T], object] | None = None,
        **parameters: Any,
    ) -> Agg[T, Any]:
        """Return the aggregate with that name and these parameters, of an expression; without one, of whole payloads.

        Raises `QueryError` if the name is unknown, does not stand for an aggregate, or for one that takes other parameters.

        >>> Repository()("quantile", lambda e: e.fare, q=0.5).function.compute_result([1, 2, 4])
        2
        """
        module = self.get(name, **parameters)
        if not isinstance(module, AnyUDA):
            kind, found = kind_of(module), f"sd.udm.get({name!r})"
            uses = {"udo": f"apply({found})", "udso": f"scan({found})", "udf": f"f = {found}, then f(e.x)"}
            raise QueryError(f"{name!r} is a {kind.upper()}, not an aggregate", hint=f"write {uses[kind]}")
        for given in (f, where):
            if given is not None and not callable(given):
                raise QueryError(
                    f"{given!r} is not an expression over a row",
                    hint=f"write sd.udm({name!r}, lambda e: ...); the module's own parameters go by name",
                )
        return Agg(module, f, where)

    def get(self, name: str, /, *arguments: Any, **parameters: Any) -> Any:
        """Return the module with that name, for `aggregate` or `apply`; a class is instantiated with these parameters.

        A function of expressions (`@sd.udf`) is returned as it is.
        Raises `QueryError` if the name is unknown, or its module takes other parameters.

        >>> Repository().get("quantile", q=0.5).label
        'quantile'
        """
        module = self._find(name)
        if not isinstance(module, type):
            if arguments or parameters:
                raise QueryError(
                    f"{name!r} is not a class, so it takes no parameters", hint="register the class to give it parameters"
                )
            return module
        try:
            inspect.signature(module).bind(*arguments, **parameters)
        except TypeError as error:
            raise QueryError(f"{name!r} cannot be made: {error}; it is {name}({parameters_of(module)})") from None
        return module(*arguments, **parameters)

    @overload
    def register(self, name: str, module: M, /, *, replace: bool = False) -> M: ...
    @overload
    def register(self, name: str, /, *, replace: bool = False) -> Callable[[M], M]: ...
    def register(self, name: str, module: Any = None, /, *, replace: bool = False) -> Any:
        """Register a module under a name in this program, and return the module; without a module, return a decorator.

        A module is a class, an instance, or a function with `@sd.uda`, `@sd.udo` or `@sd.udf`. It hides modules of distributions
        and built-ins with that name. Raises `QueryError` for anything else, and for a name that another module of the program
        already has, unless `replace` is true.

        >>> from streamdsl.udm.builtin import Quantile
        >>> udm = Repository()
        >>> nearly_all = udm.register("p99", Quantile(0.99))
        >>> udm.register("p99", Quantile(0.999))
        Traceback (most recent call last):
            ...
        streamdsl.errors.QueryError: 'p99' is registered already: streamdsl.udm.builtin:Quantile
        Hint: choose another name, or register it with replace=True, as in a notebook's cell that is run again
        """
        if not isinstance(name, str) or not name:
            raise QueryError(
                f"a module is registered by a name, not by {name!r}", hint='write @sd.udm.register("median") before the class'
            )
        if module is None:
            return partial(self._register, name, replace=replace)
        return self._register(name, module, replace=replace)

    def _register(self, name: str, module: Any, *, replace: bool) -> Any:
        offer = Offer(OWN, _path(_checked(module, repr(module))), partial(_itself, module))
        known = self._registered.get(name)
        if known and known.load() is not module and not replace:
            raise QueryError(
                f"{name!r} is registered already: {known.path}",
                hint="choose another name, or register it with replace=True, as in a notebook's cell that is run again",
            )
        self._registered[name] = offer
        return module

    def catalog(self) -> Catalog:
        """Return all modules with their types, parameters and properties; one that cannot be used is listed with its error.

        >>> [entry.call for entry in Repository().catalog() if entry.name.startswith("count")]
        ['count', 'count_distinct']
        """
        found = [self._entry(name, offer) for name in self._names() for offer in self._offers(name)]
        return Catalog(sorted(found, key=_rank))

    def _entry(self, name: str, offer: Offer) -> Entry:
        try:
            entry = entry_of(name, offer.load(), offer.origin, offer.path)
            self._choose(name)
        except QueryError as error:
            return Entry(name, offer.origin, offer.path, error=str(error))
        return replace(entry, signature=offer.signature) if offer.signature else entry

    def _find(self, name: object) -> Module:
        if not isinstance(name, str):
            raise QueryError(
                f"sd.udm takes the name of a module, not {name!r}",
                hint="a module at hand needs no name: Median().of(lambda e: e.x)",
            )
        return self._choose(name).load()

    def _name_of(self, module: object) -> str | None:
        path = _path(module)
        for name in self._names():
            offers = self._offers(name)
            if len(offers) == 1 and offers[0].path == path:
                found = offers[0].load()
                if found is module or (type(found) is type(module) and found == module):
                    return name
        return None

    def _choose(self, name: str) -> Offer:
        """Return the single offer of a name; raises `QueryError` if there are none or several."""
        offers = self._offers(name)
        if len(offers) > 1:
            raise QueryError(
                f"{name!r} is provided by {' and by '.join(sorted(map(str, offers)))}",
                hint=f"import one of them, and register it: sd.udm.register({name!r}, ...)",
            )
        if not offers:
            raise self._unknown(name)
        return offers[0]

    def _unknown(self, name: str) -> QueryError:
        close = closest(name, self._names())
        return QueryError(
            f"no module is named {name!r}; there are {', '.join(self._names())}",
            hint=f"did you mean {close!r}?" if close else f"register it: sd.udm.register({name!r}, MyModule)",
        )

    def _names(self) -> list[str]:
        return sorted(self._registered.keys() | self._installed.keys())

    def _offers(self, name: str) -> list[Offer]:
        own = self._registered.get(name)
        return [own] if own else self._installed.get(name, [])

    @cached_property
    def _installed(self) -> dict[str, list[Offer]]:
        offers: dict[str, list[Offer]] = {}
        for name, offer in _installed_offers():
            offers.setdefault(name, []).append(offer)
        return offers


def _installed_offers() -> Iterator[tuple[str, Offer]]:
    from importlib.metadata import entry_points

    for name, module in builtin.BUILTINS.items():
        signature = f"{_TAKES.get(module.gives, 'V')} -> {module.gives}"
        yield name, Offer(BUILT_IN, _path(module), partial(_itself, module), signature)
    for point in entry_points(group=GROUP):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else "a distribution without metadata"
        yield point.name, Offer(origin, point.value, partial(_load, point, origin))


def _itself(module: Module) -> Module:
    return module


def _load(point: EntryPoint, origin: str) -> Module:
    where = f"{point.name!r} of {origin} ({point.value})"
    try:
        module = point.load()
    except Exception as error:
        raise QueryError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}", hint="upgrade that distribution, or tell its authors"
        ) from error
    return _checked(module, where)


def _checked(module: Any, shown: str) -> Module:
    """Return a module that can be registered; raises `QueryError` for any other object, named `shown` in the error."""
    if inspect.isabstract(module):
        raise QueryError(f"{shown} is abstract: it does not define {', '.join(sorted(module.__abstractmethods__))}")
    if not kind_of(module):
        is_function = inspect.isroutine(module)
        raise QueryError(
            f"{shown} is no module",
            hint="decorate the function with @sd.uda, @sd.udo or @sd.udf"
            if is_function
            else "a module is a class that derives from sd.UDA, sd.UDO or streamdsl.udm.UDSO, or an instance of one",
        )
    checked: Module = module
    return checked


def _path(module: Any) -> str:
    """Return the place of a module's definition, in the form of an entry point."""
    function = module.function if isinstance(module, FunctionModule) else module
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def _rank(entry: Entry) -> tuple[int, str, str]:
    return ({OWN: 0, BUILT_IN: 2}.get(entry.origin, 1), entry.origin, entry.name)


repository: Final = Repository()
"""The repository of this program: `sd.udm`."""


def name_of(module: object) -> str | None:
    """Return the name that stands for a module, a class of modules or a function in this program, None if there is none.

    >>> name_of(builtin.Median)
    'median'
    """
    return repository._name_of(module)
