"""The studies of parts of the engine still run."""

import pytest

from benchmarks.studies import modules, secret, windows
from streamdsl.engine.operator import Gate


@pytest.mark.parametrize("name", modules.queries())
def test_a_window_is_filled_and_corrected(name: str) -> None:
    filled, late = modules.fill_and_correct(*modules.queries()[name], 10)
    assert filled > 0
    assert late > 0


@pytest.mark.parametrize("window", ["columnar", "general"])
def test_window_operators_are_measured_by_themselves(window: str) -> None:
    events = windows.Events.random(200)
    _, _, rows = windows.operator_ns(window, windows.SIZE, events, Gate(by_end=True))
    cells = set(zip((events.le // windows.SIZE).tolist(), events.keys.tolist(), strict=True))
    assert rows == len(cells)
    assert windows.session_ns(window, windows.SIZE, events, "watermark") > 0


@pytest.mark.parametrize("engine", secret.ENGINES)
def test_a_simulation_keeps_no_more_of_many_tuples_than_of_few(engine: str) -> None:
    few, many = (secret.measure(engine, 20, 5, count) for count in (500, 4000))
    assert many.reports > few.reports
    assert many.kept <= 2 * 20 + 4 * 5
    assert few.kept <= 2 * 20 + 4 * 5
