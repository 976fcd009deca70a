"""The studies of parts of the engine still run."""

import json
from pathlib import Path

import pytest

from benchmarks.studies import matrix, modules, secret, windows
from streamdsl.engine.operator import EmitPolicy


@pytest.mark.parametrize("name", modules.queries())
def test_a_window_is_filled_and_corrected(name: str) -> None:
    filled, late = modules.fill_and_correct(modules.queries()[name], 10)
    assert filled > 0
    assert late > 0


def test_the_window_operator_is_measured_by_itself() -> None:
    events = windows.Events.random(200)
    _, _, rows = windows.operator_ns(windows.SIZE, events, EmitPolicy(by_end=True))
    cells = set(zip((events.le // windows.SIZE).tolist(), events.keys.tolist(), strict=True))
    assert rows == len(cells)
    assert windows.session_ns(windows.SIZE, events, "watermark") > 0


@pytest.mark.parametrize("engine", secret.ENGINES)
def test_a_simulation_keeps_no_more_of_many_tuples_than_of_few(engine: str) -> None:
    few, many = (secret.measure(engine, 20, 5, count) for count in (500, 4000))
    assert many.reports > few.reports
    assert many.kept <= 2 * 20 + 4 * 5
    assert few.kept <= 2 * 20 + 4 * 5


@pytest.mark.parametrize("row", matrix.MATRIX)
def test_each_cell_of_the_matrix_answers_as_the_reference(row: str) -> None:
    assert all(matrix.small(query).is_right("speculative") for query in matrix.MATRIX[row].values())


def test_a_cell_that_has_become_dear_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(matrix, "MATRIX", {"operators": {"semi_join": matrix.OTHERS["semi_join"]}})
    monkeypatch.setattr(matrix, "RECORD", tmp_path / "matrix.json")
    assert matrix.main(["--record", "--repeat", "1"]) == 0
    assert json.loads(matrix.RECORD.read_text())["speculative"]["operators"]["semi_join"] > 0
    matrix.RECORD.write_text('{"speculative": {"operators": {"semi_join": 1e9}}}')
    assert matrix.main(["--check", "--repeat", "1"]) == 0
    matrix.RECORD.write_text('{"speculative": {"operators": {"semi_join": 1e-9}}}')
    assert matrix.main(["--check", "--repeat", "1"]) == 1
    assert "operators semi_join" in capsys.readouterr().out
