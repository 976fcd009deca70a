"""Alarms with hysteresis: on at one threshold, off only at a lower one, so that a value that trembles there is one alarm.

Source: O. H. Schmitt, *A Thermionic Trigger*, Journal of Scientific Instruments 15(1), 24-26, 1938.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamdsl.udm import UDSO
from udm_examples.settings import apart


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm goes on or off, at a value."""

    is_on: bool
    value: float


class Hysteresis(UDSO[float, bool, Alarm]):
    """An alarm that goes on at the first value of at least `high`, and off at the first one after it of at most `low`.

    It is off before the first row; NaN changes nothing. The state is whether it is on: a group whose alarm is off is forgotten
    once its rows can no longer change.

    Raises `QueryError` unless both are finite and `low < high`.

    >>> alarm = Hysteresis(low=70.0, high=80.0)
    >>> alarm.process(False, 81.5, le=0)
    (True, [Alarm(is_on=True, value=81.5)])
    >>> alarm.process(True, 75.0, le=1)
    (True, [])

    In a query, for each machine by itself; `to_edges` makes each alarm last until the next:

    >>> import streamdsl as sd
    >>> values = [("a", 75.0), ("a", 81.0), ("b", 90.0), ("a", 79.0), ("a", 69.0)]
    >>> heat = sd.from_rows([(t, t + 1, value) for t, value in enumerate(values)])
    >>> alarms = heat.group_by("_0").apply(lambda g: g.select(lambda e: e._1).scan(Hysteresis(low=70.0, high=80.0)).to_edges())
    >>> alarms.where(lambda e: e._1.is_on).run().cht()
    CHT
      [1, 4) _0='a' _1=Alarm(is_on=True, value=81.0)
      [2, inf) _0='b' _1=Alarm(is_on=True, value=90.0)
    """

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = apart(low, high)

    def create_state(self) -> bool:
        """Return that it is off."""
        return False

    def process(self, state: bool, payload: float, le: int) -> tuple[bool, list[Alarm]]:
        """Return whether it is on after a value, and the alarm if that has changed."""
        is_on = payload > self.low if state else payload >= self.high
        if payload != payload or is_on == state:
            return state, []
        return is_on, [Alarm(is_on, payload)]

    def is_empty(self, state: bool) -> bool:
        """Say whether it is off, as at first."""
        return not state
