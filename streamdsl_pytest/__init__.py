"""The pytest plugin of streamdsl: fixtures for the functions of its test kit that draw at random, and for a virtual clock.

It is a package of its own because pytest imports it at every start: it imports streamdsl when a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamdsl import CHT, Event
    from streamdsl.testing import UdmReport, VirtualClock


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--streamdsl-seed`."""
    group = parser.getgroup("streamdsl")
    group.addoption("--streamdsl-seed", type=int, default=0, metavar="N", help="the seed of streamdsl's fixtures (default: 0)")


@pytest.fixture
def check_udm(request: pytest.FixtureRequest) -> Callable[..., UdmReport]:
    """`streamdsl.testing.check_udm`, its examples drawn with `--streamdsl-seed`: `check_udm(MyModule())`."""
    from streamdsl.testing import check_udm

    default: int = request.config.getoption("--streamdsl-seed")

    def check(module: Any, events: Any = None, seed: int = default, **options: Any) -> UdmReport:
        return check_udm(module, events, seed, **options)

    return check


@pytest.fixture
def arrival_orders(request: pytest.FixtureRequest) -> Callable[..., list[list[Event[Any]]]]:
    """`streamdsl.testing.arrival_orders`, drawn with `--streamdsl-seed`: `for events in arrival_orders(cht, 20)`."""
    from streamdsl.testing import arrival_orders

    default: int = request.config.getoption("--streamdsl-seed")

    def orders(cht: CHT[Any] | Any, n: int, seed: int = default) -> list[list[Event[Any]]]:
        return arrival_orders(cht, n, seed)

    return orders


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A `streamdsl.testing.VirtualClock` at 1970-01-01."""
    from streamdsl.testing import VirtualClock

    return VirtualClock()
