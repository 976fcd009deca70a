"""The dashboard asks for what the endpoint has, and shows all of it."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from streamdsl.monitoring.metrics import METRICS, Metric

BOARD: dict[str, Any] = json.loads(files("streamdsl.monitoring").joinpath("dashboard.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
OF_SCRAPING = {"job", "instance", "le"}


def metric_of(name: str) -> Metric | None:
    return next((metric for metric in METRICS if name in metric.samples), None)


def names_in(query: str) -> list[str]:
    return re.findall(r"\b((?:streamdsl|process)_\w+)", query)


def test_each_query_names_a_metric_that_is_there_and_labels_that_it_has() -> None:
    for title, target in TARGETS:
        names = names_in(target["expr"])
        assert names, title
        for name in names:
            metric = metric_of(name)
            assert metric is not None or name == "process_resident_memory_bytes", (title, name)
            labels = {*(metric.labels if metric else ()), *OF_SCRAPING}
            used = re.findall(r"(\w+)=~?\"", target["expr"]) + re.findall(r"{{(\w+)}}", target["legendFormat"])
            used += re.findall(r"by \((\w+)\)", target["expr"])
            assert set(used) <= labels, (title, used)


def test_counters_are_rates_and_nothing_else_is() -> None:
    for title, target in TARGETS:
        for name in names_in(target["expr"]):
            metric = metric_of(name)
            grows = metric is not None and metric.kind != "gauge"
            assert grows == bool(re.search(rf"(rate|increase)\({name}\b", target["expr"])), title


def test_each_metric_is_shown() -> None:
    shown = {name for _, target in TARGETS for name in names_in(target["expr"])}
    ticks = {"streamdsl_cti_ticks"}  # of ticks only the lag says something
    assert {metric.name for metric in METRICS if not shown & set(metric.samples)} == ticks


def test_variables_ask_for_a_metric_that_is_there() -> None:
    asked = [each["definition"] for each in BOARD["templating"]["list"] if each["type"] == "query"]
    assert len(asked) == 2
    assert all(metric_of(name) for query in asked for name in names_in(query))


def test_no_panel_hides_another() -> None:
    cells = [
        (x, y)
        for panel in BOARD["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
