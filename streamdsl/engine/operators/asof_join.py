"""As-of join: each left row with the matching right rows that start nearest to its own start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import Frontier, of_same_ends
from streamdsl.engine.growing import materialised
from streamdsl.engine.ids import PairIds
from streamdsl.engine.operators.matching import MOST
from streamdsl.engine.operators.nearest import NO_ROWS, NearestOperator
from streamdsl.engine.operators.nearness import NOTHING
from streamdsl.engine.order import by_columns
from streamdsl.engine.pairs import all_but, are_among, distinct_values
from streamdsl.engine.row_batch import PAIRS, RowBatch
from streamdsl.engine.sorted import Probe, Row
from streamdsl.engine.sorting import order_by, sorted_integers
from streamdsl.expr.evaluate import Inputs, RowError, project
from streamdsl.expr.row_program import FilterStep, ProjectStep, RowProgram, Values
from streamdsl.expr.schema import Schema
from streamdsl.expr.sides import PAIR, without_row
from streamdsl.expr.table import Rows, Table, flatnonzero
from streamdsl.plan.node import AsofJoin
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, Ticks

Match: TypeAlias = tuple[Row, Row | None]
"""A left row with a right one, or without a match."""


class Matches(NamedTuple):
    """Slots of left rows, with the slots of their right rows; -1 for one without a match."""

    lefts: Rows
    rights: Rows

    def take(self, rows: Rows) -> Matches:
        """Return these."""
        return Matches(self.lefts[rows], self.rights[rows])

    def and_also(self, others: Matches) -> Matches:
        """Return both."""
        return Matches(*map(np.concatenate, zip(self, others, strict=True)))

    def in_both(self, others: Matches) -> tuple[Rows, Rows]:
        """Return which of these are among the others, and which of those they are.

        >>> Matches(np.array([4, 4]), np.array([-1, 7])).in_both(Matches(np.array([9, 4]), np.array([7, 7])))
        (array([1]), array([1]))
        """
        lefts, rights = self.and_also(others)
        order, codes = sorted_integers(lefts * (int(rights.max(initial=0)) + 2) + rights)
        same = flatnonzero(codes[1:] == codes[:-1])
        return order[same], order[same + 1] - len(self.lefts)


class AsofJoinOperator(NearestOperator):
    """As-of join.

    A change of a right row affects the left rows that have no nearer one; a change of a left row affects its own matches.
    """

    kind = "asof_join (sorted runs)"

    def __init__(self, label: str, node: AsofJoin) -> None:
        super().__init__(label, node.matching, node.near)
        self.node = node
        self._waiting: list[tuple[int, int]] = []
        """The left rows whose match is not final yet, in a heap by LE."""
        self._moves = 0
        self._cti = MIN_TIME
        self.pair = node.projection or PAIR
        self.alone = without_row(self.pair, 1)
        self._pairing, self._lonely = RowProgram([ProjectStep(self.pair)]), RowProgram([ProjectStep(self.alone)])
        self._choosing = None if self.where is None else RowProgram([FilterStep(self.where)])

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return of_same_ends(inputs[0], self.cti)

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        self.take(batches)
        changed, rows = self.left.changed, self.left.rows
        is_new = rows.was.take(changed) == rows.le.take(changed)
        came, known, concerned = changed[flatnonzero(is_new)], changed[flatnonzero(~is_new)], self.concerned()
        before = self._noted(distinct_values(np.concatenate([known, concerned])))
        now = self._found(np.concatenate([concerned, came]))
        out = self._batch(before, now, concerned) if len(before.lefts) or len(now.lefts) else EMPTY
        self.enqueue(came)
        self.end_step()
        return out

    def change_rows_of(self, place: int, batch: RowBatch) -> Batch | None:
        if self.node.ties != "all":
            return None
        ((_, _, le, re_old, re), *others), values, groups = batch.changes, batch.values, batch.groups
        if others or re_old != le or self._pairing.is_refused or not self.sides[place].rows.takes(batch):
            return None
        numbers = self.key_numbers_of_rows(place, batch)
        if numbers is None:
            return None
        (id,), group = batch.row_ids(), groups[0] if groups else None
        if place == 0:
            return self._insert_left((id, le, re, values[0], numbers[0], group))
        return self._insert_right((id, le, le + CHRONON, values[0], numbers[0], group))

    def _insert_left(self, left: Row) -> Batch | None:
        """Insert a left row, and return it with its matches; None if the columnar path must run."""
        _, le, _, _, number, _ = left
        near, reach = self.node.near, self.reach
        rights = self._that_match(left, self.right.probe_one(number, *reach.around(le, reach.looks_back, reach.looks_forward)))
        if rights is None:
            return None
        _, best = min([(near.of(le, right[1]), right[1]) for right in rights], default=(None, NOTHING))
        matches: list[Row | None] = [right for right in rights if right[1] == best]
        out = self._change_matches([], [(left, right) for right in matches or self._missing])
        if out is not None:
            self.enqueue_one(le, self.left.add_one(left, best))
        return out

    def _insert_right(self, right: Row) -> Batch | None:
        """Insert a right row, and return the changes of left rows without a nearer one; None if the columnar path must run."""
        _, start, _, _, number, _ = right
        near, reach = self.node.near, self.reach
        gone: list[Match] = []
        come: list[Match] = []
        concerned = []
        lefts = self.left.probe_one(number, *reach.around(start, reach.looks_forward, reach.looks_back))
        if lefts is None:
            return None
        for slot, left in lefts:
            best = self.left.rows.note_of(slot)
            now, before = near.of(left[1], start), None if best == NOTHING else near.of(left[1], best)
            if now is None or (before is not None and before < now):
                continue
            matches, known = self._that_match(left, [(0, right)]), self._known(left, best)
            if matches is None or known is None:
                return None
            if matches:
                concerned.append(slot)
                gone += [] if best == start else [(left, other) for other in known]
                come.append((left, right))
        out = self._change_matches(gone, come)
        if out is not None:
            self.right.add_one(right)
            for slot in concerned:
                self.left.rows.note_one(slot, start)
        return out

    def _known(self, left: Row, best: int) -> Sequence[Row | None] | None:
        """Return the matches of a left row that start at a time (None: no match); None for all if the columnar path must run."""
        return self._missing if best == NOTHING else self._that_match(left, self.right.probe_one(left[4], best, best + CHRONON))

    @property
    def _missing(self) -> list[Row | None]:
        return [None] if self.node.outer else []

    def _that_match(self, left: Row, found: Sequence[tuple[int, Row]] | None) -> list[Row] | None:
        """Return the right rows that match a left one; None if the columnar path must run."""
        if found is None:
            return None
        rights = [right for _, right in found]
        if self._choosing is None or not rights:
            return rights
        passed = self.row_values(self._choosing, [left[3] + right[3] for right in rights], [left[5]] * len(rights))
        return None if passed is None or passed[2] is None else [rights[row] for row in passed[2]]

    def _change_matches(self, gone: Sequence[Match], come: Sequence[Match]) -> Batch | None:
        """Return the changes of joined rows, row by row; None if the columnar path must run."""
        found = [*gone, *come]
        if not found or len(found) > MOST:
            return None if found else EMPTY
        values: list[Values] = [()] * len(found)
        schema: Schema | None = None
        for program, is_alone in ((self._pairing, False), (self._lonely, True)):
            places = [place for place, (_, right) in enumerate(found) if (right is None) is is_alone]
            if places:
                rows = [left[3] + (right[3] if right else ()) for left, right in map(found.__getitem__, places)]
                passed = self.row_values(program, rows, [None] * len(rows), is_alone)
                if passed is None or schema not in (None, program.schema):
                    return None
                schema = program.schema
                for place, each in zip(places, passed[0], strict=True):
                    values[place] = each
        assert schema is not None, "there are rows"
        changes = []
        for place, (left, right) in enumerate(found):
            id, le, re, _, _, _ = left
            changes.append(((id, right and right[0]), 0, le, re if place < len(gone) else le, le if place < len(gone) else re))
        groups: list[Any] = [left[5] for left, _ in found]
        return RowBatch(changes, values, schema, None if groups[0] is None else groups, PAIRS)

    def _noted(self, lefts: Rows) -> Matches:
        """Return the matches of left rows before this step."""
        if not len(lefts):
            return Matches(NO_ROWS, NO_ROWS)
        at, rights = self.with_noted(lefts)
        kept = self.matching(lefts[at], rights)
        return self._with_alone(lefts, self.left.rows.notes.take(lefts), self._chosen(Matches(lefts[at[kept]], rights[kept])))

    def _chosen(self, found: Matches) -> Matches:
        """Return those that count of matches that start together: all, or of each left row that with the last payload."""
        if self.node.ties == "all" or len(found.lefts) < 2:
            return found
        found = found.take(np.lexsort([found.rights, found.lefts]))
        order = by_columns(self.right.rows.table(found.rights), found.lefts)
        found = found if order is None else found.take(order)
        return found.take(flatnonzero(np.append(found.lefts[1:] != found.lefts[:-1], True)))

    def _with_alone(self, lefts: Rows, notes: Ticks, matches: Matches) -> Matches:
        alone = lefts[flatnonzero(notes == NOTHING)] if self.node.outer else NO_ROWS
        return matches.and_also(Matches(alone, np.full(len(alone), -1))) if len(alone) else matches

    def _found(self, lefts: Rows) -> Matches:
        """Search for the matches of left rows again, and note the LE of these."""
        if not len(lefts):
            return Matches(NO_ROWS, NO_ROWS)
        best, at, rights = self.note(lefts)
        return self._with_alone(lefts, best, self._chosen(Matches(lefts[at], rights)))

    def _batch(self, before: Matches, now: Matches, concerned: Rows) -> Batch:
        """Return the changes of joined rows, retractions before insertions. A pair that stays only gets another end."""
        rows = self.left.rows
        if not len(before.lefts):
            return Batch.concat(self._parts(now, rows.le.take(now.lefts), rows.re.take(now.lefts)))
        was, ends = rows.was.take(before.lefts), rows.re.take(before.lefts)
        if len(concerned):
            stays, again = before.in_both(now)
            goes = are_among(before.lefts, concerned)
            goes[stays] = False
            ends = np.where(goes, rows.le.take(before.lefts), ends)
            now = now.take(all_but(again, len(now.lefts)))
        moved = flatnonzero(was != ends)
        gone = self._parts(before.take(moved), was[moved], ends[moved])
        return Batch.concat([*gone, *self._parts(now, rows.le.take(now.lefts), rows.re.take(now.lefts))])

    def _parts(self, matches: Matches, re_old: Ticks, re_new: Ticks) -> Iterator[Batch]:
        """Yield the changes of left rows with matches, and of those without."""
        alone = matches.rights < 0
        n_alone = int(np.count_nonzero(alone))
        if n_alone in (0, len(alone)):
            if len(alone):
                yield self._part(matches, re_old, re_new, n_alone > 0)
            return
        for part, is_alone in ((flatnonzero(~alone), False), (flatnonzero(alone), True)):
            yield self._part(matches.take(part), re_old[part], re_new[part], is_alone)

    def _part(self, matches: Matches, re_old: Ticks, re_new: Ticks, is_alone: bool) -> Batch:
        left, right = (side.rows for side in self.sides)
        lefts, rights = matches
        others = np.full(len(lefts), None, dtype=object) if is_alone else right.ids(rights)
        groups = None if left.groups is None else left.groups.take(lefts)
        table = self._projected(lefts, None if is_alone else rights)
        return Batch(PairIds(left.ids(lefts), others), left.le.take(lefts), re_old, re_new, table, groups)

    def _projected(self, lefts: Rows, rights: Rows | None) -> Table:
        try:
            if rights is not None:
                return materialised(project(self.pair, self.inputs(lefts, rights)))
            return materialised(project(self.alone, Inputs((self.left.rows.table(lefts),), len(lefts))))
        except RowError as error:
            raise self.pair_error(error, lefts, rights) from error.cause

    # State: left rows until they have ended and their match is final, right rows while a left row may match them

    def enqueue(self, lefts: Rows) -> None:
        """Add left rows: if matches may start later, the output CTI waits for them."""
        if self.reach.looks_forward:
            for entry in zip(self.left.rows.le.take(lefts).tolist(), lefts.tolist(), strict=True):
                heappush(self._waiting, entry)

    def enqueue_one(self, le: int, slot: int) -> None:
        """Add a single left row."""
        if self.reach.looks_forward:
            heappush(self._waiting, (le, slot))

    def with_noted(self, lefts: Rows) -> tuple[Rows, Rows]:
        """Return the left rows with a match, each with every right row that starts at its LE and was there before the step."""
        rows, rights = self.left.rows, self.right.rows
        notes = rows.notes.take(lefts)
        noting = flatnonzero(notes != NOTHING)
        notes = notes[noting]
        probe = Probe(rows.numbers.take(lefts[noting]), notes, notes + 1)
        found = [(noting[:0], noting[:0])]
        for at, slots in self.right.index.candidates(probe) if len(noting) else ():
            le = rights.le.take(slots)
            kept = flatnonzero((rights.was.take(slots) > le) & (le == notes[at]) & self.right.has_key(probe, at, rights, slots))
            found.append((noting[at[kept]], slots[kept]))
        at, slots = map(np.concatenate, zip(*found, strict=True))
        return at, slots

    def forget(self, cti: int) -> None:
        self._cti = max(cti, self._cti)
        if sum(side.earn_cleanup_credit() for side in self.sides) >= sum(side.cleanup_cost() for side in self.sides):
            for side, needed in zip(self.sides, self._needed(), strict=True):
                side.sweep(needed)
        self.forget_numbers()

    def _needed(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Say which rows of each side a later change may need."""
        rows = self.left.rows
        open_rows = self._unsettled()
        lefts = rows.re.values >= max(self._cti, MIN_TIME + 1)
        lefts[open_rows] = True
        bound = min([self._cti, *rows.le.take(open_rows).tolist()])
        rights = self._within_reach(bound)
        rights[self.with_noted(flatnonzero(lefts))[1]] = True
        return lefts, rights

    def _unsettled(self) -> Rows:
        rows = self.left.rows
        le = rows.le.values
        return flatnonzero((rows.re.values > le) & self.reach.may_improve(le, rows.notes.values, self._cti))

    def _within_reach(self, bound: int) -> NDArray[np.bool_]:
        """Say which right rows may match left rows from the bound on: they are within the tolerance, and no other is nearer."""
        rights = self.right.rows
        le = rights.le.values
        there = rights.re.values > le
        reached: NDArray[np.bool_] = there & (le >= bound)
        if self.reach.looks_back:
            before = flatnonzero(there & (le < bound) & (le >= self.reach.first(bound)))
            reached[before if self.where is not None else self._last_of_keys(before)] = True
        return reached

    def _last_of_keys(self, slots: Rows) -> Rows:
        """Return the last right rows of each key by LE."""
        numbers, le = self.right.rows.numbers.take(slots), self.right.rows.le.take(slots)
        order = order_by([numbers, le])
        if order is not None:
            slots, numbers, le = slots[order], numbers[order], le[order]
        stops = np.append(flatnonzero(numbers[1:] != numbers[:-1]) + 1, len(slots))
        last = np.repeat(le[stops - 1], np.diff(stops, prepend=0)) if len(slots) else le
        return slots[flatnonzero(le == last)]

    def output_cti(self, ctis: list[int]) -> int:
        return min([*ctis, self._first_pending()]) if self.reach.looks_forward else min(ctis)

    def _first_pending(self) -> int:
        """Return the LE of the first left row whose match is not final, and remove those before it from the queue."""
        rows = self.left.rows
        if self._moves != self.left.moves:
            self._moves = self.left.moves
            slots = self._unsettled()
            self._waiting = sorted(zip(rows.le.take(slots).tolist(), slots.tolist(), strict=True))
        count = 1
        while self._waiting:
            entries = [heappop(self._waiting) for _ in range(min(count, len(self._waiting)))]
            le, slots = np.array(entries, dtype=np.int64).T
            there = (rows.re.take(slots) > le) & self.reach.may_improve(le.copy(), rows.notes.take(slots), self._cti)
            if there.any():
                for at in flatnonzero(there).tolist():
                    heappush(self._waiting, entries[at])
                return self._waiting[0][0]
            count *= 2
        return INFINITY

    def state(self) -> dict[str, int]:
        events = sum(int(np.count_nonzero(needed)) for needed in self._needed())
        return {**super().state(), "events": events}
