"""The catalog: a row per module, its types, parameters and properties; as text, as a table, as a frame."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Optional, TypeVar
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest

import streamdsl as sd
from streamdsl import aggregates
from streamdsl.udm.listing import PROPERTIES, Catalog, Entry
from streamdsl.udm.repository import Repository
from streamdsl.udm.signatures import parameters, signature

if TYPE_CHECKING:
    from decimal import Decimal

T = TypeVar("T")
K = TypeVar("K")


@dataclass
class Trip:
    zone: str
    fare: float


class Mean(sd.IncrementalUDA[float, tuple[float, int], float]):
    """The mean, kept as a sum and a number.

    More is not shown.
    """

    reads: ClassVar[Sequence[str] | None] = ("fare",)

    def create_state(self) -> tuple[float, int]:
        return 0.0, 0

    def add_event_to_state(self, state: tuple[float, int], payload: float) -> tuple[float, int]:
        return state[0] + payload, state[1] + 1

    def merge_states(self, a: tuple[float, int], b: tuple[float, int]) -> tuple[float, int]:
        return a[0] + b[0], a[1] + b[1]

    def compute_result(self, state: tuple[float, int]) -> float:
        return state[0] / state[1]


class Busy(sd.TimeSensitiveUDO[Trip, dict[str, int]]):
    """Zones with <many> trips & more."""

    time_bound: ClassVar[bool] = True
    deterministic: ClassVar[bool] = False
    commutes_with_filter_on: ClassVar[Sequence[str]] = ("zone", "day")

    def __init__(self, least: int = 3, *zones: str, unit: str | None = None) -> None:
        self.least = least

    def compute_result(
        self, events: Sequence[sd.IntervalEvent[Trip]], window: sd.WindowDescriptor
    ) -> list[sd.IntervalEvent[dict[str, int]]]:
        return []


class Pairs(sd.UDA[T, list[T]]):
    def compute_result(self, payloads: Sequence[T]) -> list[T]:
        return list(payloads)


class FloatPairs(Pairs[float]): ...


class AnyPairs(Pairs): ...  # type: ignore[type-arg]


class Keyed(Pairs[K], Generic[T, K]): ...


class KeyedByText(Keyed[int, str | None]): ...


class Mixed(sd.TimeSensitiveIncrementalUDO["Trip", dict[str, int], tuple[str, ...]]): ...


@pytest.fixture
def catalog() -> Catalog:
    udm = Repository()
    udm.register("mean", Mean)
    udm.register("busy", Busy)
    udm.register("busiest", Busy(5))
    udm.register("half", half)
    return udm.catalog()


@sd.udf
def half(value: float, of: int | None = None) -> float:
    """Half of it."""
    return value / 2


def entry(catalog: Catalog, name: str) -> Entry:
    return next(entry for entry in catalog if entry.name == name)


@pytest.mark.parametrize(
    ("cls", "types"),
    [
        (Mean, "float -> float"),
        (Busy, "Trip -> dict[str, int]"),
        (Pairs, "T -> list[T]"),
        (FloatPairs, "float -> list[float]"),
        (AnyPairs, "Any -> list[Any]"),
        (Keyed, "K -> list[K]"),
        (KeyedByText, "str | None -> list[str | None]"),
        (Mixed, "Trip -> tuple[str, ...]"),
    ],
)
def test_types_are_those_that_the_class_passes_on_to_its_base(cls: type, types: str) -> None:
    assert signature(cls) == types


def untyped(values):  # type: ignore[no-untyped-def]
    return values


def optional(values: Sequence[float]) -> Optional[float]:  # noqa: UP045
    return None


def stamped(events: Sequence[sd.IntervalEvent[Trip]], window: sd.WindowDescriptor) -> Iterator[sd.IntervalEvent[tuple[int, str]]]:
    yield from ()


def listed(values: Sequence[Trip]) -> list[list[float]]:
    return []


def of_arrays(values: npt.NDArray[np.float64]) -> float:
    return 0.0


def unknown(values: Sequence[Decimal]) -> Decimal:
    return values[0]


@pytest.mark.parametrize(
    ("module", "types"),
    [
        (sd.uda(untyped), "Any -> Any"),
        (sd.uda(optional), "float -> float | None"),
        (sd.udo(stamped), "Trip -> tuple[int, str]"),
        (sd.udo(listed), "Trip -> list[float]"),
        (sd.uda(listed), "Trip -> list[list[float]]"),
        (sd.uda(vectorized=True)(of_arrays), "NDArray[float64] -> float"),
        (sd.uda(unknown), "Sequence[Decimal] -> Decimal"),
        (sd.uda(max), "Any -> Any"),
        (half, "(float, int | None) -> float"),
    ],
)
def test_types_of_functions_are_their_annotations(module: object, types: str) -> None:
    assert signature(module) == types


def test_parameters_are_shown_with_their_defaults() -> None:
    assert parameters(Busy) == "least: int = 3, *zones: str, unit: str | None = None"
    assert parameters(Busy(3)) == parameters(Mean) == ""


def test_rows_say_what_modules_are(catalog: Catalog) -> None:
    mean = entry(catalog, "mean")
    assert (mean.kind, mean.signature, mean.parameters) == ("uda", "float -> float", "")
    assert (mean.origin, mean.path) == ("this program", f"{__name__}:Mean")
    assert mean.description == "The mean, kept as a sum and a number."
    assert mean.words == "incremental, mergeable, reads fare"
    busy = entry(catalog, "busy")
    assert busy.kind == "udo"
    assert busy.words == "time-sensitive, not deterministic, time-bound, commutes with filter on zone, day"
    assert entry(catalog, "busiest").parameters == ""
    assert entry(catalog, "half").kind == "udf"
    assert entry(catalog, "half").words == ""
    assert entry(catalog, "half").description == "Half of it."


def test_properties_of_a_function_are_those_it_was_given() -> None:
    udm = Repository()

    @udm.register("last_price")
    @sd.uda(order_insensitive=False, reads=())
    def last_price(prices: Sequence[float]) -> float:
        """The last price."""
        return prices[-1]

    found = entry(udm.catalog(), "last_price")
    assert found.words == "not order-insensitive, reads nothing"
    assert found.path == f"{__name__}:{last_price.function.__qualname__}"
    assert dict(found.properties) == {name: getattr(last_price, name) for name in PROPERTIES}


def test_a_property_that_only_an_instance_knows_is_left_out() -> None:
    class Chosen(Mean):
        @property
        def reads(self) -> tuple[str, ...]:  # type: ignore[override]
            return ("fare",)

    udm = Repository()
    udm.register("chosen", Chosen)
    udm.register("chosen_one", Chosen())
    assert "reads" not in entry(udm.catalog(), "chosen").properties
    assert entry(udm.catalog(), "chosen_one").properties["reads"] == ("fare",)


def test_a_module_without_a_docstring_borrows_none() -> None:
    udm = Repository()
    udm.register("pairs", FloatPairs)
    assert entry(udm.catalog(), "pairs").description == ""


def test_the_built_in_aggregates_are_listed_with_the_types_of_their_functions(catalog: Catalog) -> None:
    built_in = [entry for entry in catalog if entry.origin == "streamdsl"]
    assert [entry.name for entry in built_in] == sorted(aggregates.__all__)
    for found in built_in:
        assert found.kind == "uda"
        assert found.signature == f"{taken(getattr(aggregates, found.name))} -> {given(getattr(aggregates, found.name))}"


def test_the_built_in_aggregates_are_those_of_their_functions() -> None:
    udm = Repository()
    for name in aggregates.__all__:
        parameters: dict[str, Any] = {"q": 0.5} if name == "quantile" else {}
        assert udm(name, len, **parameters).function == getattr(aggregates, name)(len, **parameters).function
        assert udm.get(name, **parameters) == udm(name, len, **parameters).function


def taken(function: Callable[..., Any]) -> str:
    """Return what an aggregate function's expression gives, `object` where it takes any; count's two are overloaded."""
    text = str(inspect.signature(function).parameters["f"].annotation)
    return text.removeprefix("Callable[[T], ").removesuffix("]").removesuffix(" | None") if text != "Any" else "object"


def given(function: Callable[..., Any]) -> str:
    text = str(inspect.signature(function).return_annotation)
    return text.partition(", ")[2].removesuffix("]")


def test_the_catalog_is_a_list_of_rows_by_origin_and_name(catalog: Catalog) -> None:
    assert isinstance(catalog, Sequence)
    assert [entry.name for entry in catalog[:5]] == ["busiest", "busy", "half", "mean", "avg"]
    assert isinstance(catalog[:5], Catalog)
    assert catalog[0] in catalog
    assert len(catalog) == len(list(catalog)) == 4 + len(aggregates.__all__)


def test_the_text_is_a_block_per_origin(catalog: Catalog) -> None:
    shown = Catalog([entry for entry in catalog if entry.name in ("busiest", "busy", "half", "mean", "median", "quantile")])
    expected = """
6 modules

this program
  busiest  udo  Trip -> dict[str, int]        time-sensitive, not deterministic, time-bound, commutes with filter on zone, day
      Zones with <many> trips & more.
  busy(least: int = 3, *zones: str, unit: str | None = None)
           udo  Trip -> dict[str, int]        time-sensitive, not deterministic, time-bound, commutes with filter on zone, day
      Zones with <many> trips & more.
  half     udf  (float, int | None) -> float
      Half of it.
  mean     uda  float -> float                incremental, mergeable, reads fare
      The mean, kept as a sum and a number.

streamdsl
  median   uda  float -> float
      The middle value; for an even number of values the mean of the two in the middle.
  quantile(q: float, method: Literal['linear', 'inverted_cdf'] = 'linear')
           uda  float -> float
      The q-quantile: interpolated linearly, or the smallest value such that at least a share q of the values is at most it.
"""
    assert repr(shown) == expected.strip("\n")
    assert repr(Catalog([])) == "0 modules"
    assert repr(shown[:1]).startswith("1 module\n")


def test_the_table_is_well_formed_and_escaped(catalog: Catalog) -> None:
    picture, shown = catalog._repr_html_().split("</svg></div>")
    assert [kind in picture for kind in ("UDA", "UDO", "UDSO", "UDF")] == [True, True, False, True]
    table = ElementTree.fromstring(shown.replace("<br>", "<br/>"))
    header, *body = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    assert header == ["name", "kind", "signature", "parameters", "properties", "description", "origin"]
    assert [row[0] for row in body] == [entry.name for entry in catalog]
    assert body[1] == [
        "busy",
        "udo",
        "Trip -> dict[str, int]",
        "least: int = 3, *zones: str, unit: str | None = None",
        "time-sensitive, not deterministic, time-bound, commutes with filter on zone, day",
        "Zones with <many> trips & more.",
        f"this program{__name__}:Busy",
    ]


def test_an_error_stands_in_the_place_of_the_description() -> None:
    shown = Catalog([Entry("odd", "acme 1.0", "acme:<Odd>", error="it is <odd>\nHint: do")])
    assert repr(shown) == "1 module\n\nacme 1.0\n  odd\n      error: it is <odd>\n      Hint: do"
    assert "<b>error: it is &lt;odd&gt;<br>Hint: do</b>" in shown._repr_html_()
    assert "acme:&lt;Odd&gt;" in shown._repr_html_()


def test_the_frame_has_a_column_per_property(catalog: Catalog) -> None:
    frame = catalog.to_pandas().set_index("name")
    assert list(frame.index) == [entry.name for entry in catalog]
    assert set(PROPERTIES) < set(frame.columns)
    assert frame.loc["busy", "time_bound"] is True
    assert frame.loc["mean", "reads"] == ("fare",)
    assert list(frame[frame["incremental"] == True].index) == ["mean"]  # noqa: E712
    assert frame.loc["quantile", "parameters"] == "q: float, method: Literal['linear', 'inverted_cdf'] = 'linear'"
    assert frame.loc["avg", "error"] is None
