"""Values that are recognized by their fingerprints, with the number of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias
from weakref import ref

import numpy as np

from streamdsl.engine.index.pair_index import PairIndex, longer
from streamdsl.engine.pairs import distinct
from streamdsl.expr.arrow_buffers import as_arrow
from streamdsl.expr.deferred import Codebook, CodeNumbers, ColumnSource, Fingerprints
from streamdsl.expr.table import Column, Rows, flatnonzero
from streamdsl.temporal.time import Ticks

_ALL: Final = slice(None)
Look: TypeAlias = Callable[[Column], Ticks]
Wait: TypeAlias = Callable[[ColumnSource], Ticks]


class KnownValues:
    """The numbers of values that have been seen, by kind. Values of the first source are indexed only when there is a second one.

    A table that is pushed whole is the only source, and so needs no index.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _OneKind] = {}
        self._first: ref[ColumnSource] | None = None
        self._is_alone = True
        """Whether only one source has been seen."""
        self._book: tuple[Codebook, CodeNumbers] | None = None
        """The latest codebook, and the numbers of its codes."""
        self._n_waited = 0
        """How many values wait, or have waited."""
        self._late: list[tuple[ColumnSource, Ticks]] = []
        """Values of the first source that are not indexed by their fingerprints yet."""

    @classmethod
    def of(cls, waiting: ColumnSource, numbers: Ticks) -> KnownValues:
        """Return what is known where only these values are, which wait and have these numbers."""
        known = cls()
        known._is_alone, known._late, known._n_waited = False, [(waiting, numbers)], waiting.size
        return known

    def recall(self, source: ColumnSource) -> CodeNumbers | None:
        """Return the numbers that an earlier source has for the codes of this one."""
        book = source.codebook if self._book is not None else None
        return self._book[1] if book is not None and self._book is not None and book.is_same(self._book[0]) else None

    def note(self, source: ColumnSource, known: CodeNumbers) -> None:
        """Record the numbers of a source's codes."""
        if (book := source.codebook) is not None:
            self._book = book, known

    def find(self, source: ColumnSource, codes: Rows, look: Look, wait: Wait | None, n_values: int) -> Ticks:
        """Return the numbers of the values of codes that were not asked for yet.

        `look` gives those of unknown values; `wait` those of new values, that need not be made, where no others can be like them:
        all `n_values` that have numbers are known here then.
        """
        self._first = self._first or ref(source)
        self._is_alone &= self._first() is source  # in a union two sources take turns
        if self._is_alone:
            waiting = source.deferred_values(codes) if wait is not None and self._n_waited == n_values else None
            if wait is None or waiting is None:
                return look(source.decoded(codes))
            self._n_waited += waiting.size
            self._late.append((waiting, wait(waiting)))
            return self._late[-1][1]
        given = source.fingerprints(codes)
        if given is None:
            return look(source.decoded(codes))
        self._learn_late()
        known = self._kinds.setdefault(given.kind, _OneKind())
        numbers, slots = known.numbers(given)
        if len(new := flatnonzero(numbers < 0)):
            are_all_here = self._n_waited == known.n_known == n_values
            waiting = source.deferred_values(codes[new]) if wait is not None and are_all_here else None
            if wait is None or waiting is None:
                numbers[new] = look(source.decoded(codes[new]))
            else:
                self._n_waited += waiting.size
                numbers[new] = wait(waiting)
            known.learn(given, new, slots[new], numbers[new])
        return numbers

    def _learn_late(self) -> None:
        """Index the values of the first source, now that there is a second one."""
        for waiting, numbers in self._late:
            if (given := waiting.only(_ALL).row_fingerprints()) is not None:
                known = self._kinds.setdefault(given.kind, _OneKind())
                _, slots = known.numbers(given)
                known.learn(given, np.arange(len(slots)), slots, numbers)
        self._late.clear()


class _OneKind:
    """The numbers of values of one kind.

    >>> known = _OneKind()
    >>> two = Fingerprints("int", np.array([0, 1]), np.array([7, 0]), None)
    >>> numbers, slots = known.numbers(two)
    >>> known.learn(two, np.array([0, 1]), slots, np.array([70, 80]))
    >>> numbers.tolist(), known.numbers(two)[0].tolist()
    ([-1, -1], [70, 80])
    """

    def __init__(self) -> None:
        self.n_known = 0
        self._index = PairIndex()
        self._numbers: Ticks = np.empty(0, dtype=np.int64)
        self._places: Rows = np.empty(0, dtype=np.intp)
        self._texts: Any = None
        """Where values are texts, those that are known, each at its place: different ones may have equal fingerprints."""

    def numbers(self, given: Fingerprints) -> tuple[Ticks, Rows]:
        """Return the number of each value, -1 where it is not known, and where `learn` puts it."""
        slots = self._index.find_different(given.are_null, given.integers)
        if (more := self._index.size - len(self._numbers)) > 0:
            self._numbers = np.append(self._numbers, np.full(more, -1))
            self._places = longer(self._places, self._index.size)
        return self._at(slots, given.texts), slots

    def _at(self, slots: Rows, texts: Any) -> Ticks:
        """Return the numbers in slots, -1 where these are of other texts."""
        numbers = self._numbers[slots]
        if self._texts is not None:
            from streamdsl.io.arrow_fingerprints import are_same

            numbers[~are_same(texts, self._texts.take(as_arrow(self._places[slots])))] = -1
        return numbers

    def learn(self, given: Fingerprints, rows: Rows, slots: Rows, numbers: Ticks) -> None:
        """Remember the numbers of the values in some rows, but of those that are taken for others."""
        is_free = self._numbers[slots] < 0
        rows, slots = rows[is_free], slots[is_free]
        self._numbers[slots] = numbers[is_free]
        self.n_known += len(distinct(slots, self._index.size))  # of texts with one fingerprint one is known
        if given.texts is None:
            return
        import pyarrow as pa

        known = [] if self._texts is None else [self._texts]
        self._places[slots] = np.arange(len(slots)) + sum(map(len, known))
        self._texts = pa.concat_arrays([*known, given.texts.take(as_arrow(rows))])
