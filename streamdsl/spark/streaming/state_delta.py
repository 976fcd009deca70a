"""What makes one state of another: from where each stretch of it has moved, and the words that are not what they were.

A state is columns, one after another. From one micro-batch to the next a few words of a column change, columns grow or lose their
front, and what comes after them moves. So the bytes are compared under a *shift*, how far they have moved, for as long as most
words are equal. Where they are not, samples of the old state say under which shift it goes on. That is found by guesses, but a
delta is right whatever they are: it holds each word that is not the same under its shift.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Stretch: TypeAlias = tuple[int, int]
"""A place of the new state, and the shift from there on: where a byte was, less where it is."""
_WORD: Final = 8
_PAGE: Final = 4096
_SMALL: Final = 2**20
"""In a state of fewer bytes a page has an eighth of the size, so that little is lost where a shift begins and ends."""
_BLOCK: Final = 256
"""So many pages are compared at a time while a shift holds."""
_PER_LOOKUP: Final = 2**15
"""Pages are looked up so often that this is the least number of bytes for each: what is all new must not take long either."""
_PATIENCE: Final = 8
"""After so many lookups in vain one page more is passed over before the next."""
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], dtype=np.uint64)
"""A sample is so many words, known by their sum with these factors."""
_SEEN_BITS: Final = 20
"""By so many bits of these sums what is no sample is mostly found out without a search."""
_VOTES: Final = 32
"""So many samples that a page has say from where it has moved, at most."""
_CANDIDATES: Final = 6
_RECENT: Final = 4
"""So many shifts of those that samples speak for, and of the last ones, are tried."""


def delta(old: bytes, new: bytes) -> bytes:
    """Return what makes `new` of `old`.

    >>> old = np.arange(5000).tobytes()
    >>> change = delta(old, b"begin" + old + b"end")
    >>> state = bytearray(old)
    >>> patch(state, change)
    >>> bytes(state) == b"begin" + old + b"end", len(change) < 100
    (True, True)
    """
    whole = len(new) // _WORD * _WORD
    comparison = _Comparison(old, new)
    stretches = list(comparison.stretches())
    ends = [start for start, _ in stretches[1:]] + [whole]
    changed = np.concatenate([comparison.differs(start, end, shift) for (start, shift), end in zip(stretches, ends, strict=True)])
    edges = np.flatnonzero(np.diff(changed, prepend=False, append=False)).astype(np.uint32)
    head = np.array([len(new), len(stretches), len(edges) // 2, *itertools.chain(*stretches)], dtype=np.int64)
    return b"".join([head.tobytes(), edges.tobytes(), _words(new, 0, whole)[changed].tobytes(), new[whole:]])


def patch(state: bytearray, change: bytes) -> None:
    """Make a state the next one, by its delta."""
    size, n_stretches, n_runs = np.frombuffer(change, dtype=np.int64, count=3).tolist()
    whole, start = size // _WORD * _WORD, 3 * _WORD
    stretches = np.frombuffer(change, dtype=np.int64, count=2 * n_stretches, offset=start).reshape(-1, 2).tolist()
    start += 2 * n_stretches * _WORD
    begins, ends = np.frombuffer(change, dtype=np.uint32, count=2 * n_runs, offset=start).astype(np.int64).reshape(-1, 2).T
    start += n_runs * _WORD
    moved = []
    for (first, shift), (stop, _) in itertools.pairwise([*stretches, (whole, 0)]):
        low, high = _within(len(state), first, stop, shift)
        if shift:
            moved.append((low, state[low + shift : high + shift]))
    state[size:] = bytes(max(0, size - len(state)))
    for low, part in moved:
        state[low : low + len(part)] = part
    lengths = ends - begins
    places = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    stop = start + len(places) * _WORD
    np.frombuffer(state, dtype=np.uint64, count=whole // _WORD)[places] = _words(change, start, stop)
    state[whole:] = change[stop:]


def _words(data: bytes, start: int, stop: int) -> Words:
    size = (stop - start) // _WORD
    return np.frombuffer(data, dtype=np.uint64, count=size, offset=start) if size else np.empty(0, np.uint64)


def _within(size: int, start: int, stop: int, shift: int) -> tuple[int, int]:
    """Return which part of [start, stop) stood within a state of so many bytes, in whole words from the start."""
    low = min(stop, start + max(0, -(-(-shift - start) // _WORD) * _WORD))
    return low, max(low, low + (min(stop, size - shift) - low) // _WORD * _WORD)


class _Comparison:
    """Two states, and the shifts from one to the other."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self._old = old
        self._new = new
        self._page = _PAGE if len(new) >= _SMALL else _PAGE // 8
        self._samples: _Samples | None = None

    def differs(self, start: int, stop: int, shift: int) -> NDArray[np.bool_]:
        """Return for each word of the new state between two places whether it is not the old one under a shift."""
        found = np.ones((stop - start) // _WORD, dtype=np.bool_)
        low, high = _within(len(self._old), start, stop, shift)
        same = slice((low - start) // _WORD, (high - start) // _WORD)
        np.not_equal(_words(self._new, low, high), _words(self._old, low + shift, high + shift), out=found[same])
        return found

    def stretches(self) -> Iterator[Stretch]:
        """Yield the stretches of the new state, in order."""
        begin, at, tried, misses = 0, 0, 0, 0
        recent = [0]
        yield begin, recent[0]
        for _ in range(64 + len(self._new) // _PER_LOOKUP):
            page = self._first_other_page(at, recent[0])
            if page is None:
                return
            if page > at:
                tried, misses = page - self._page, 0
            found = self._shift_of(page, recent)
            if found == recent[0]:
                misses += 1
                tried, at = page, page + (1 + misses // _PATIENCE) * self._page
                continue
            begin = self._where_it_turns(max(begin, tried), page + self._page, recent[0], found)
            yield begin, found
            at, tried, misses = page + self._page, page, 0
            recent = [found, *(shift for shift in recent if shift != found)][:_RECENT]

    def _first_other_page(self, at: int, shift: int) -> int | None:
        """Return the first page from a place on of which many words have changed, if there is one."""
        last = at + (len(self._new) - at) // self._page * self._page
        for start in range(at, last, _BLOCK * self._page):
            stop = min(start + _BLOCK * self._page, last)
            pages = self.differs(start, stop, shift).reshape(-1, self._page // _WORD)
            if len(others := np.flatnonzero(np.count_nonzero(pages, axis=1) > pages.shape[1] // 8)):
                return start + int(others[0]) * self._page
        return None

    def _shift_of(self, page: int, recent: Sequence[int]) -> int:
        """Return the shift under which a page is most like the old state, the one that holds if none is better by much."""
        if self._samples is None:
            self._samples = _Samples(self._old, self._page)
        shifts = dict.fromkeys([*recent, *self._samples.shifts(self._new, page, recent)])
        counts = {shift: np.count_nonzero(self.differs(page, page + self._page, shift)) for shift in shifts}
        best = min(counts, key=counts.__getitem__)
        return best if counts[best] <= counts[recent[0]] // 2 else recent[0]

    def _where_it_turns(self, start: int, stop: int, before: int, after: int) -> int:
        """Return the place between two where one shift should end and the next begin."""
        gain = np.cumsum(self.differs(start, stop, before).astype(np.int64) - self.differs(start, stop, after))
        return start + int(np.argmin(np.concatenate([[0], gain]))) * _WORD


class _Samples:
    """A few words at regular places of a state, eight in a page, by which a page is found again wherever it stands."""

    def __init__(self, data: bytes, page: int) -> None:
        self._page, self._distance = page, page // 8
        words = _words(data, 0, len(data) // self._distance * self._distance).reshape(-1, self._distance // _WORD)
        sums = sum((words[:, n] * factor for n, factor in enumerate(_FACTORS)), np.zeros(len(words), np.uint64))
        self._order = np.argsort(sums, kind="stable")
        self._sums = sums[self._order]
        self._seen = np.zeros(2**_SEEN_BITS, dtype=np.bool_)
        self._seen[_first_bits(sums)] = True

    def shifts(self, data: bytes, page: int, recent: Sequence[int]) -> list[int]:
        """Return the shifts that most samples speak for, if this page of another state is of the one that was sampled.

        Of samples that are alike those count that are nearest to where recent shifts would have them.
        """
        windows = min(self._page, len(data) - page - len(_FACTORS) * _WORD + 1)
        sums = np.zeros(windows, dtype=np.uint64)
        for n, factor in enumerate(_FACTORS):
            # Words at all places of the page, each of which begins one byte after the one before it.
            sums += np.ndarray(windows, dtype=np.uint64, buffer=data, offset=page + n * _WORD, strides=1) * factor
        hits = np.flatnonzero(self._seen[_first_bits(sums)])
        if not len(hits):
            return []
        wanted, firsts = np.unique(sums[hits], return_index=True)
        starts = np.searchsorted(self._sums, wanted)
        found = self._sums[np.minimum(starts, len(self._sums) - 1)] == wanted
        wanted, firsts, starts = (each[found][:_VOTES] for each in (wanted, firsts, starts))
        stops = np.searchsorted(self._sums, wanted, side="right")
        votes: Counter[int] = Counter()
        for place, start, stop in zip((page + hits[firsts]).tolist(), starts.tolist(), stops.tolist(), strict=True):
            votes.update(self._nearest(start, stop, place, recent))
        return [shift for shift, _ in votes.most_common(_CANDIDATES)]

    def _nearest(self, start: int, stop: int, place: int, recent: Sequence[int]) -> set[int]:
        """Return the shifts to a place from samples that are alike: of those that are next to where recent shifts have it."""
        alike = self._order[start:stop]
        after = np.searchsorted(alike, [(place + shift) // self._distance for shift in recent]) if stop > start + 1 else [0]
        chosen = {max(0, each - 1) for each in after} | {min(each, len(alike) - 1) for each in after}
        return {int(alike[each]) * self._distance - place for each in chosen}


def _first_bits(sums: Words) -> Words:
    return sums >> np.uint64(64 - _SEEN_BITS)
