"""Windows that are some of another kind's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamdsl.temporal import Lifetime, Unit
from streamdsl.windows import Ends, Output, Windows


@dataclass(frozen=True, slots=True)
class PartOf(Windows):
    """The base of kinds that have a subset of the windows of another kind, `all_windows`, and its facts."""

    @property
    @abstractmethod
    def all_windows(self) -> Windows:
        """The kind that has all windows."""

    @property
    def time_unit(self) -> Unit | None:
        return self.all_windows.time_unit

    @property
    def by_position(self) -> bool:
        return self.all_windows.by_position

    @property
    def by_clock(self) -> bool:
        return self.all_windows.by_clock

    def check_use(self, output: Output, sensitive: Sequence[str] = ()) -> None:
        self.all_windows.check_use(output, sensitive)

    @property
    def fixed_size(self) -> int | None:
        return self.all_windows.fixed_size

    @property
    def longest(self) -> int:
        return self.all_windows.longest

    @property
    def are_apart(self) -> bool:
        return self.all_windows.are_apart

    @property
    def ends(self) -> Ends:
        return self.all_windows.ends

    @property
    def ends_count(self) -> bool:
        return self.all_windows.ends_count

    @property
    def completed_by_rows(self) -> bool:
        return self.all_windows.completed_by_rows

    @property
    def follows_ctis(self) -> bool:
        return self.all_windows.follows_ctis

    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        return self.all_windows.settled(lives, c, time_sensitive, reads_re)

    @property
    def horizon(self) -> int:
        return self.all_windows.horizon

    def fewest(self) -> Windows:
        return self.all_windows.fewest()

    def bounded(self) -> Iterator[tuple[str, Windows]]:
        return self.all_windows.bounded()

    def describe(self, unit: Unit | None = None) -> str:
        return self.all_windows.describe(unit)
