from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import datetime
from itertools import pairwise

import numpy as np

from streamdsl.demo.data import NEW_YORK
from streamdsl.demo.storm_picture import LAYERS, STORM, Axes, CarrierCount, _spread, counts_at, draw, layers

SVG = "{http://www.w3.org/2000/svg}"
START = int(STORM[0].timestamp())


def counts(carriers: int = 3) -> list[CarrierCount]:
    return [CarrierCount(START + 3600, START + 7200 * (1 + k), f"C{k}", k + 1) for k in range(carriers)]


def drawn(found: list[CarrierCount], grounded: list[tuple[int, int]] | None = None) -> ET.Element:
    return ET.fromstring(draw(found, {"C0": "A & B <Air>"}, grounded or []))


def texts(picture: ET.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def test_counts_are_read_where_their_lifetimes_hold() -> None:
    found = counts_at(
        [CarrierCount(0, 10, "A", 2), CarrierCount(10, 20, "A", 5), CarrierCount(3, 4, "B", 1)], np.array([0, 9, 10, 19, 20])
    )
    assert {name: column.tolist() for name, column in found.items()} == {"A": [2, 2, 5, 5, 0]}


def test_the_busiest_carriers_have_layers_and_the_rest_share_one() -> None:
    series = {f"C{k}": np.array([k, k]) for k in range(len(LAYERS) + 3)}
    bands = layers(series, {})
    assert [band.label for band in bands] == [*(f"C{k}" for k in range(len(LAYERS) + 2, 2, -1)), "3 others"]
    assert bands[-1].aloft.tolist() == [0 + 1 + 2] * 2
    assert len({band.colour for band in bands}) == len(LAYERS) + 1


def test_each_layer_is_drawn_and_labelled() -> None:
    picture = drawn(counts())
    assert len(picture.findall(f".//{SVG}polygon")) == 3
    assert {"A & B <Air>", "C1", "C2"} <= set(texts(picture))


def test_layers_stand_on_each_other() -> None:
    picture = drawn([CarrierCount(START, START + 10**6, "C0", 10), CarrierCount(START, START + 10**6, "C1", 5)])
    frame = Axes(START, int(STORM[1].timestamp()), 20)
    tops = [
        min(float(point.split(",")[1]) for point in layer.get("points", "").split()) for layer in picture.iter(f"{SVG}polygon")
    ]
    assert tops == [round(frame.y(10), 1), round(frame.y(15), 1)]


def test_the_axes_say_what_they_show_in_new_york_time() -> None:
    shown = texts(drawn(counts()))
    assert {"aircraft aloft", "time in New York", "Friday 8 February", "Saturday 9 February"} <= set(shown)
    assert [text for text in shown if ":" in text] == [
        "00:00",
        "06:00",
        "12:00",
        "18:00",
        "00:00",
        "06:00",
        "12:00",
        "18:00",
        "00:00",
    ]


def test_hours_without_flights_are_shaded_and_told() -> None:
    five = int(datetime(2013, 2, 9, 5, tzinfo=NEW_YORK).timestamp())
    picture = drawn(counts(), [(five, five + 3600), (five + 3600, five + 7200)])
    assert len(picture.findall(f".//{SVG}rect[@class='grounded']")) == 2
    assert "05:00 to 07:00" in texts(picture)


def test_the_picture_is_legible_in_dark_mode_and_alone() -> None:
    text = draw(counts(), {})
    assert "prefers-color-scheme:dark" in text
    assert 'class="paper"' in text
    assert "href" not in text


def test_nothing_aloft_still_makes_a_picture() -> None:
    assert drawn([]).findall(f".//{SVG}polygon") == []


def test_labels_keep_apart_and_stay_above_the_axis() -> None:
    placed = _spread([480.0, 479.0, 478.0, 300.0], 21.0)
    assert placed[0] == 480.0
    assert placed[-1] == 300.0
    assert all(below - above >= 21.0 for below, above in pairwise(placed))
