"""The engine's sessions against the definition: random legal changes, watermarks and CTIs, everything checked after each."""

from __future__ import annotations

import random

import pytest

from streamdsl.engine.general.event_index import EventRow
from streamdsl.engine.general.group import Setting
from streamdsl.engine.general.session import SessionWindows
from streamdsl.engine.operator import EmitPolicy
from streamdsl.temporal import INFINITY, MIN_TIME, Lifetime
from streamdsl.windows import Output, Session

FAR = 300
SPECS = [Session(1), Session(4), Session(25), Session(1, 3), Session(4, 9), Session(30, 7)]


class Actor:
    """Random changes of one group, and the lifetimes that it must have by now."""

    def __init__(self, spec: Session, setting: Setting, rng: random.Random) -> None:
        self.spec, self.setting, self.rng = spec, setting, rng
        self.group = SessionWindows(setting, spec)
        self.lives: dict[int, Lifetime] = {}
        self.high_water = self.cti = MIN_TIME
        self.now = 0

    def act(self) -> None:
        """Insert, shorten, lengthen or remove an event, raise the watermark, or send a CTI."""
        action = self.rng.choices([self.insert, self.retract, self.raise_watermark, self.send_cti], [6, 6, 2, 1])[0]
        action()
        for entry in self.group.dirty.values():
            self.group.decide(entry, MIN_TIME)
        self.group.settled()

    def insert(self) -> None:
        self.now += self.rng.choice([0, 0, 1, 3, 12])
        le = max(self.cti, self.now - self.rng.choice([0, 0, 5, 30]))
        endless = self.rng.random() < 0.05
        self.lives[len(self.lives)] = Lifetime(le, le)
        self.move(len(self.lives) - 1, INFINITY if endless else le + self.rng.choice([1, 1, 4, 20]))
        self.raise_to(le)

    def retract(self) -> None:
        changeable = [id for id, life in self.lives.items() if life.re >= self.cti and not life.is_empty]
        if changeable:
            id = self.rng.choice(changeable)
            life = self.lives[id]
            earliest = max(self.cti, life.le)
            self.move(id, self.rng.choice([earliest, earliest + self.rng.randint(0, 12), max(earliest, life.le + 40)]))

    def move(self, id: int, re: int) -> None:
        life = self.lives[id]
        if re != life.re:
            self.group.take(EventRow(id, life.le, re), life.re, re)
            self.lives[id] = Lifetime(life.le, re)

    def raise_watermark(self) -> None:
        self.raise_to(self.now + self.rng.choice([0, 2, 15]))

    def raise_to(self, time: int) -> None:
        self.high_water = max(self.high_water, time)
        self.group.cause = MIN_TIME
        self.group.reveal(self.high_water)

    def send_cti(self) -> None:
        self.cti = max(self.cti, self.now - self.rng.choice([0, 3, 10, 40]))
        self.raise_to(self.cti)
        self.group.forget(self.cti)
        start = self.spec.settled(self.alive, self.cti, self.setting.sees_ends, self.setting.sees_ends)
        assert all(row.re > start or row.re >= self.cti for row in self.group.events), "an event of closed windows alone is kept"

    def check(self) -> None:
        group = self.group
        group.events._check()
        group.windows._check()
        sessions = [session for session in self.spec.sessions(self.lives.values()) if session.re > self.cti]
        assert [session.period for session in group.sessions] == sessions
        group.sessions._check()
        assert group.is_empty == (not sessions)
        settled = self.settled
        expected = {w: self.count(w) for w in self.windows() if w.le < group.made_before and w.re > settled}
        assert {Lifetime(e.le, e.re): e.n_events for e in group.windows} == expected
        assert set(group.hidden) == {w.le for w in expected if not self.setting.emit_policy.is_open(*w, self.high_water)}
        self.check_events()
        self.check_alarm()
        assert group.output_cti(self.cti) == self.spec.settled(
            self.alive, self.cti, self.setting.sees_ends, self.setting.sees_ends
        )

    @property
    def alive(self) -> list[Lifetime]:
        return [life for life in self.lives.values() if not life.is_empty]

    @property
    def settled(self) -> int:
        """The time until which windows are closed."""
        open_ends = [life.le for life in self.alive if life.re >= self.cti]
        return min([self.cti, *open_ends]) if self.setting.sees_ends else self.cti

    def windows(self) -> list[Lifetime]:
        return self.spec.over(self.lives.values(), FAR if self.spec.max_duration else INFINITY)

    def count(self, window: Lifetime) -> int:
        return sum(self.spec.belongs(life, window) for life in self.alive)

    def check_events(self) -> None:
        """Every member of a window that is not closed is there."""
        windows = [w for w in self.windows() if w.re > self.settled]
        needed = {id for id, life in self.lives.items() if any(self.spec.belongs(life, w) for w in windows)}
        assert needed <= {row.id for row in self.group.events}

    def check_alarm(self) -> None:
        """No window begins or opens between the watermark and the time that the group asks to be called at."""
        later = [w for w in self.windows() if w.re <= self.setting.emit_policy.until]
        times = [w.le for w in later] + ([w.re for w in later] if self.setting.emit_policy.by_end else [])
        due = min((time for time in times if time > self.high_water), default=None)
        alarm = self.group.next_reveal()
        assert due is None or (alarm is not None and alarm <= due)


@pytest.mark.parametrize("by_end", [False, True], ids=["speculative", "watermark"])
@pytest.mark.parametrize("until", [INFINITY, 60], ids=["endless", "bounded"])
@pytest.mark.parametrize("sees_ends", [False, True], ids=["clipped", "unclipped"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.describe())
def test_sessions_are_what_the_definition_says(spec: Session, sees_ends: bool, until: int, by_end: bool) -> None:
    for seed in range(6):
        setting = Setting(EmitPolicy(by_end, until), Output.ALIGN, sees_ends, sees_ends)
        actor = Actor(spec, setting, random.Random(f"{seed} {spec} {sees_ends} {until} {by_end}"))
        for _ in range(60):
            actor.act()
            actor.check()
