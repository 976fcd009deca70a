"""Break the engine on purpose, in a copy, and see that the laws notice: `python -m tests.sabotage`.

Each sabotage is one small change that a tired programmer could make. If the tests named with it still pass, they prove less than
they say; if its text is no longer found, the sabotage must follow the code. The test that noticed it last is asked first, since
it is one of many; `--record` notes which one does (`sabotages.json`), and of which files. `--changed` tries those alone of which
a file is another one now: the file that is broken, that of the test, or what tests of laws share.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

# What the laws import of others, so that each run of them begins with it.
import hypothesis
import hypothesis.strategies
import numba  # noqa: F401
import numpy  # noqa: F401
import pandas  # noqa: F401
import polars  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import pytest
import sortedcontainers  # noqa: F401

ROOT = Path(__file__).parents[1]
LOG = "log.txt"
FAILED = "failed.txt"
RECORD = Path(__file__).with_name("sabotages.json")
"""By sabotage the test that noticed it last, the examples with which it did, and the digest of the files that this is up to."""
WORKERS = int(os.environ.get("WORKERS") or 2)
FEW = "3"
"""The examples that a law is given where nothing is broken: they tell that it runs. That it holds, all the tests tell."""
SOME = "99"
"""The examples that a law is given: of its fixed set more than its own, which are few so that all laws run often."""
MANY = "10000"
"""The examples that it is given where it notices nothing with those."""


@dataclass(frozen=True)
class Sabotage:
    """One change of the engine: in `file`, `old` becomes `new`; `tests` (a pytest `-k` expression over the laws) must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    examples: str = SOME
    """How many are tried first."""
    where: str = "laws"
    """The folder of these tests."""


SABOTAGES = (
    Sabotage(
        "codes of columns that follow each other are those of the first one's dictionary",
        "streamdsl/expr/table.py",
        "codes = np.concatenate([codes + first for (codes, _), first in zip(parts, firsts, strict=False)])",
        "codes = np.concatenate([codes for codes, _ in parts])",
        "codes_that_came_and_those_that_were_found or columns_over_arrow_one_after_the_other",
        where="unit/expr",
    ),
    Sabotage(
        "texts that Arrow holds go to Spark in the order in which they came",
        "streamdsl/io/arrow_held.py",
        "        found = self.array_of(rows)\n",
        "        found = self.array_of(slice(None))\n",
        "payloads_survive_columns",
        where="spark",
    ),
    Sabotage(
        "what a subscription has not given yet is forgotten in a checkpoint",
        "streamdsl/engine/state/checkpoint.py",
        '    roots |= {f"subscription:{number}": each.subscriber for number, each in enumerate(session.subscriptions)}\n',
        "",
        "goes_on_with_its_subscriptions",
    ),
    Sabotage(
        "a push that is undone stays in subscriptions",
        "streamdsl/engine/limits.py",
        "session._egress, *session._subscribers]",
        "session._egress]",
        "undone_for_subscriptions",
    ),
    Sabotage(
        "a row that was hidden for a while comes back under its id",
        "streamdsl/engine/operators/alter_lifetime.py",
        "return not self.ends.keep_rows_in_place",
        "return False",
        "hides_for_a_while",
    ),
    Sabotage(
        "an event joins the session that ends as it starts, for the reference too",
        "streamdsl/windows/session.py",
        "if found and life.le < found[-1].re:",
        "if found and life.le <= found[-1].re:",
        "tick_by_tick",
    ),
    Sabotage(
        "windows of a grid with gaps start a tick late, for the reference too",
        "streamdsl/windows/hopping.py",
        "return self.offset + k * self.hop",
        "return self.offset + k * self.hop + (self.hop > self.size)",
        "tick_by_tick",
    ),
    Sabotage(
        "an hour is lost where clocks are set, for the reference too",
        "streamdsl/temporal/zones.py",
        "begin: Seconds = np.maximum(starts[pieces], shown - self._column[pieces]) + cycles * _CYCLE",
        "begin: Seconds = np.maximum(starts[pieces], shown - self._column[np.maximum(pieces - 1, 0)]) + cycles * _CYCLE",
        "tick_by_tick",
    ),
    Sabotage(
        "a day that a place has left out is a window, for the reference too",
        "streamdsl/windows/calendar_periods.py",
        "skipped = np.array(self._dates.skipped if self._in_days and self._step == 1 else [], dtype=np.int64)",
        "skipped = np.array([], dtype=np.int64)",
        "tick_by_tick",
    ),
    Sabotage(
        "what rounding loses of a square is not added",
        "streamdsl/engine/columnar/digits.py",
        "for each in (squares, lost):",
        "for each in (squares, 0 * lost):",
        "variances_of_values_far_from_zero",
    ),
    Sabotage(
        "a variance of which nearly all cancels is taken as it was computed",
        "streamdsl/engine/columnar/exact.py",
        "surely = fits & (least == most)",
        "surely = fits",
        "variances_of_values_far_from_zero",
    ),
    Sabotage(
        "the highest digit of a square is forgotten where rows come one by one",
        "streamdsl/engine/columnar/accumulators.py",
        "parts + [((self._squares, weight), digit) for weight, digit in square_places(value)]",
        "parts + [((self._squares, weight), digit) for weight, digit in square_places(value)[1:]]",
        "variances_are_those_of_the_built_ins",
    ),
    Sabotage(
        "steps of a pattern meet though their keys differ",
        "streamdsl/plan/nodes/keyed.py",
        """if self.overlapping else parts)

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (self.key,)""",
        """if self.overlapping else parts)

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return (Whole(),)""",
        "different_keys_do_not_meet",
    ),
    Sabotage(
        "a filter needs no fields",
        "streamdsl/plan/nodes/rows.py",
        "return all_of(wanted, fields_read([self.predicate]))",
        "return wanted",
        "not_needed_change_nothing",
    ),
    Sabotage(
        "edges are found without their key",
        "streamdsl/plan/nodes/keyed.py",
        "return wanted if self.key is None else all_of(wanted, fields_read([self.key]))",
        "return wanted",
        "not_needed_change_nothing",
    ),
    Sabotage(
        "a filter of shortened rows meets only what is left of them",
        "streamdsl/plan/nodes/lifetimes.py",
        'return "the same rows" if self.ends.keep_all_rows else "more rows"',
        'return "the same rows"',
        "filter_may_be_below",
    ),
    Sabotage(
        "an end that is cut by a time moves as if it were not",
        "streamdsl/plan/end_bounds.py",
        "later = [max(least(part, MIN_TIME, MIN_TIME), plus_bound(bound, CHRONON)) for part in staying]",
        "later = [INFINITY for part in staying]",
        "the_rules_are_those_that_the_semantics_writes_down",
    ),
    Sabotage(
        "a start that is computed from RE moves with no CTI",
        "streamdsl/plan/ends.py",
        "changes = (bounds.change(self.le, cti, cti), bounds.change(self.full_re, cti, cti))",
        "changes = (bounds.change(self.full_re, cti, cti),)",
        "ctis_and_rows_are_right_whatever_the_ends",
    ),
    Sabotage(
        "an end that is computed from RE stays",
        "streamdsl/plan/end_bounds.py",
        "return EndChange(MIN_TIME, MIN_TIME) if reads_re(end) else None",
        "return None",
        "ctis_and_rows_are_right_whatever_the_ends",
    ),
    Sabotage(
        "rows that are moved as their neighbours end stay apart",
        "streamdsl/plan/ends.py",
        "return by is not None and least_by is not None and by <= least_by",
        "return by is not None and least_by is not None",
        "facts_are_so_whatever_the_ends",
    ),
    Sabotage(
        "a plan has the leaves of its first input",
        "streamdsl/plan/base.py",
        "if len(below) == 1 else _each_once(leaf for each in below for leaf in each.leaves)",
        "if below else ()",
        "a_node_knows_its_leaves",
    ),
    Sabotage(
        "a window by position that begins before the first row is shorter",
        "streamdsl/engine/frames/creation.py",
        "self._least = 0 if sequence.cut else -_FAR",
        "self._least = 0",
        "begins_before_the_first_row",
    ),
    Sabotage(
        "a portion of windows has the one before its first",
        "streamdsl/spark/portion.py",
        "firsts_ending_after(times), self.first,",
        "firsts_ending_after(times), self.first - 1,",
        "a_portion_gives_what_its_windows_mean",
    ),
    Sabotage(
        "what is not final when a portion of windows ends stays there",
        "streamdsl/spark/portion_stage.py",
        "return INFINITY if self._is_last else super()._final_frontier(egress)",
        "return super()._final_frontier(egress)",
        "live_beyond_the_end_of_a_portion",
    ),
    Sabotage(
        "a module that sees ends lets the CTI pass as any other",
        "streamdsl/plan/nodes/windowed.py",
        "return self.windows.follows_ctis and not self.sees_ends",
        "return self.windows.follows_ctis",
        "cti_depends_on_no_row and unchanged",
    ),
    Sabotage(
        "what is extended for ever ends",
        "streamdsl/plan/nodes/lifetimes.py",
        "return Open(self) if which is Endless.ALL else inputs[0] if which is Endless.THE_SAME else None",
        "return None",
        "rows_end_as_is_said",
    ),
    Sabotage(
        "rows that are chopped are not kept",
        "streamdsl/plan/nodes/lifetimes.py",
        "keeps = Keeps.ROWS",
        "keeps = Keeps.NOTHING",
        "keeps_nothing_holds_no_events and chop",
    ),
    Sabotage(
        "counted windows are apart",
        "streamdsl/windows/count.py",
        "    ends = Ends.ALWAYS\n",
        "    ends = Ends.ALWAYS\n    are_apart = True\n",
        "windows_are_what_their_kind_says",
    ),
    Sabotage(
        "ends of rows do not count in snapshots",
        "streamdsl/windows/snapshot.py",
        "ends_count = True",
        "ends_count = False",
        "ends_do_not_count",
    ),
    Sabotage(
        "values of the first column are taken for new though another one has had them",
        "streamdsl/engine/known_values.py",
        "self._is_alone &= self._first() is source",
        "self._is_alone = self._first() is source",
        "take_turns",
        where="unit/engine",
    ),
    Sabotage(
        "of a column that waits the rows that are kept are the first ones",
        "streamdsl/engine/growing.py",
        "self._together().only(rows)",
        "self._together().only(slice(len(rows)))",
        "values_that_wait",
        where="unit/engine",
    ),
    Sabotage(
        "a key that waits where another was forgotten is shown as that one",
        "streamdsl/expr/deferred.py",
        "                self._rows[places - made] = self._deferred_source.size + np.arange(values.size)\n",
        "",
        "keys_that_wait",
        where="unit/engine",
    ),
    Sabotage(
        "keys that are kept are known by the numbers of others",
        "streamdsl/engine/keys.py",
        "KnownValues.of(values, self.limit + kept)",
        "KnownValues.of(values, self.limit + kept[::-1])",
        "keys_that_wait",
        where="unit/engine",
    ),
    Sabotage(
        "integers that come one by one are their own numbers though others lay far apart",
        "streamdsl/engine/keys.py",
        "return value if 0 <= value < self._own else",
        "return value if 0 <= value < self.limit else",
        "lie_far_apart",
        where="unit/engine",
    ),
    Sabotage(
        "lists of slots that are cleared are let go with those that are not",
        "streamdsl/engine/columnar/list_slots.py",
        "self._items, self._n_items = growing(kept), len(kept)",
        "self._items, self._n_items = growing(kept[::-1]), len(kept)",
        "results_are_the_lists_that_were_put_last",
    ),
    Sabotage(
        "lists differ only where an item has grown",
        "streamdsl/expr/lists.py",
        "differ = one != other",
        "differ = one > other",
        "in_columns_they_mean or results_are_the_lists",
    ),
    Sabotage(
        "what another table of keys knows of codes is taken for one's own",
        "streamdsl/engine/keys.py",
        "source.numbers is None or source.numbers.dictionary is not self._shown",
        "source.numbers is None",
        "bound_once",
    ),
    Sabotage(
        "rows without a place in a dictionary have its first value",
        "streamdsl/io/arrow_held.py",
        "np.where(are_null(chunk.indices), stop, found)",
        "np.where(are_null(chunk.indices), 0, found)",
        "keys_of_any_kind",
    ),
    Sabotage(
        "the dictionary of a later chunk is read in the first one's place",
        "streamdsl/io/arrow_held.py",
        ".astype(np.intp) + first[place]",
        ".astype(np.intp)",
        "keys_of_any_kind",
    ),
    Sabotage(
        "zeros of both signs have one code",
        "streamdsl/expr/encoding.py",
        "else column.view(np.int64)",
        "else (column + 0).view(np.int64)",
        "coded_bit_by_bit",
        where="unit/engine",
    ),
    Sabotage(
        "many values that are remembered at once are shown in the places of others",
        "streamdsl/engine/keys.py",
        "object_column(new if firsts is None else",
        "object_column(new[::-1] if firsts is None else",
        "keys_of_any_kind",
    ),
    Sabotage(
        "values that wait are learned in another order than that of their numbers",
        "streamdsl/engine/known_values.py",
        "waiting.only(_ALL).row_fingerprints()",
        "waiting.fingerprints(np.arange(waiting.size))",
        "values_that_waited",
        where="unit/engine",
    ),
    Sabotage(
        "a zero waits whatever its sign",
        "streamdsl/io/arrow_held.py",
        "and not (np.signbit(filled) & (filled == 0)).any()",
        "",
        "keys_of_any_kind",
    ),
    Sabotage(
        "moments in UTC have the order of those without a zone",
        "streamdsl/io/arrow_ranks.py",
        "last = array.type.tz is not None",
        "last = False",
        "keys_of_any_kind",
    ),
    Sabotage(
        "integers that are looked up are shown as those that had their slots before",
        "streamdsl/engine/keys.py",
        "            _WIDE.pop(self._wide, None)",
        "            pass",
        "integers_that_are_looked_up",
        where="unit/engine",
    ),
    Sabotage(
        "texts of one fingerprint are taken for each other",
        "streamdsl/engine/known_values.py",
        "numbers[~are_same(texts, self._texts.take(as_arrow(self._places[slots])))] = -1",
        "pass",
        "come_and_go",
    ),
    Sabotage(
        "keys are shown in the type that keys of another push have",
        "streamdsl/io/arrow_values.py",
        'array = arrow_array("", values) if len(kinds) == 1 else None',
        'array = arrow_array("", values)',
        "have_the_types",
        where="unit/engine",
    ),
    Sabotage(
        "points that are left by a filter keep the first ids",
        "streamdsl/engine/batch.py",
        "self.rows + self.first",
        "np.arange(self.first, self.first + len(self.le))",
        "points",
    ),
    Sabotage(
        "groups that are far apart are counted in the wrong windows",
        "streamdsl/engine/columnar/slice_sums.py",
        "places <<= block.bits",
        "places <<= block.bits - 1",
        "rows_are_counted",
    ),
    Sabotage(
        "codes of last moments beyond the span are as far from the first ones as all others",
        "streamdsl/engine/sorted/sort_keys.py",
        "return duration - 1 if inside and (re",
        "return duration - 1 if (re",
        "joins_mean_what",
    ),
    Sabotage(
        "rows that are tied are in order",
        "streamdsl/engine/sorting.py",
        "            return True\n    return False",
        "            return True\n    return True",
        "the_order_by_columns",
    ),
    Sabotage(
        "a row that comes alone takes the version of the result that it replaces",
        "streamdsl/engine/operators/driver.py",
        "            version += 1\n",
        "",
        "scalars_send",
    ),
    Sabotage(
        "a result of which a single row moves the end alone is not sent again",
        "streamdsl/engine/operators/driver.py",
        "results.values(slot) if re_old != re else None",
        "None",
        "scalars_send",
    ),
    Sabotage(
        "sessions that a single row joins keep the extremum of one",
        "streamdsl/engine/frames/folds.py",
        "            column[slot] = module.merged(column[slot], column[source])\n",
        "            column[slot] = column[slot] or column[source]\n",
        "single_row_that_joins_sessions",
    ),
    Sabotage(
        "closed windows of sessions that are cut are made again",
        "streamdsl/engine/frames/cut_session.py",
        "np.maximum(lo, self.closed_until(self.cti, rows)[codes])",
        "lo",
        "closed_windows_of_a_session_that_is_cut",
    ),
    Sabotage(
        "a session that is cut falls apart where its rows are forgotten",
        "streamdsl/engine/frames/session.py",
        "            parts.append(self.known_without_rows(slots))\n",
        "",
        "whose_rows_are_forgotten",
    ),
    Sabotage(
        "windows of a session that is cut begin when another row comes",
        "streamdsl/engine/frames/cut_session.py",
        "        return self._begins_before() > self._begun and len(self.whole.table) > 0\n",
        "        return False\n",
        "begin_as_time_goes_on",
    ),
    Sabotage(
        "a payload that is not there has the place of the first one",
        "streamdsl/engine/order.py",
        "            yield (places >= 0).astype(np.int64)\n",
        "",
        "order_of_values",
    ),
    Sabotage(
        "what single rows have kept of a window that has not shown is there when columns come",
        "streamdsl/engine/operators/framed_windows.py",
        "        if self.has_unemitted_accumulators:\n",
        "        if False:\n",
        "what_single_rows_have_kept",
    ),
    Sabotage(
        "a snapshot before an endpoint that a single retraction takes away ends where it did",
        "streamdsl/engine/data_driven/timeline.py",
        "            boundaries.re[slots[0]] = boundaries.re[slot]\n",
        "",
        "scalars_send",
    ),
    Sabotage(
        "a snapshot that a single row cuts begins with nothing",
        "streamdsl/engine/data_driven/timeline.py",
        "                boundaries.totals.copy_one(slot, before)\n",
        "                pass\n",
        "scalars_send",
    ),
    Sabotage(
        "a result that single rows let end after the watermark stays out",
        "streamdsl/engine/operators/data_driven_windows.py",
        "                if was_out:\n                    actions.retracted.append(window)\n",
        "",
        "scalars_send",
    ),
    Sabotage(
        "a single row that ends in the window behind the last that has begun enters that one too",
        "streamdsl/engine/operators/columnar_windows.py",
        "if windows.stop > last + 1:",
        "if windows.stop > last + 2:",
        "scalars_send",
    ),
    Sabotage(
        "a single row at a point between others of counted windows is taken as if it were the last",
        "streamdsl/engine/frames/count.py",
        "if table.index.has_more(low, table.place(code, INFINITY), 0) or",
        "if",
        "scalars_send",
    ),
    Sabotage(
        "a group is forgotten while a window of it that has lost all rows is open",
        "streamdsl/engine/columnar/cells.py",
        ".tolist(), self.results.groups_of_gone.tolist())",
        ".tolist(), ())",
        "until_the_window_closes",
    ),
    Sabotage(
        "a step that drops a row does not say which rows are left",
        "streamdsl/engine/row_batch.py",
        "            changes = [changes[row] for row in kept]\n",
        "",
        "scalars_send",
    ),
    Sabotage(
        "the slot of a window that is gone is found again",
        "streamdsl/engine/index/pair_index.py",
        "            self._table[self._places[slots]] = _EMPTY if self._width else _GONE\n",
        "",
        "scalars_send",
    ),
    Sabotage(
        "the rows of a published stream that were live before are forgotten when those that came later are consolidated",
        "streamdsl/engine/published.py",
        "coalesced(self._batches)",
        "coalesced(self._batches[1:])",
        "attach",
    ),
    Sabotage(
        "a float that comes alone is not counted as one",
        "streamdsl/engine/columnar/accumulators.py",
        'return [((self.number, "floats"), 1), *[',
        "return [*[",
        "scalars_send",
    ),
    Sabotage(
        "a key that is found for a single row is another one than for a column",
        "streamdsl/engine/keys.py",
        "number = first.of_one(number) << _HALF | last.of_one(value)",
        "number = last.of_one(value) << _HALF | first.of_one(number)",
        "scalars_send",
    ),
    Sabotage(
        "the active window of SECRET is the last one that has begun to close",
        "streamdsl/papers/secret/window_scope.py",
        "max(0, -((t0 + size - t) // slide))",
        "max(0, (t - t0 - size) // slide)",
        "the_printed_model",
    ),
    Sabotage(
        "an engine that is driven by batches looks at each tuple of one",
        "streamdsl/papers/secret/tick.py",
        "bid <= self._bid:",
        "bid < self._bid:",
        "mapping_functions",
    ),
    Sabotage(
        "a running simulation forgets what it has to compare with",
        "streamdsl/papers/secret/content.py",
        "low = opening(t - 1, self.t0, self.size, self.slide)",
        "low = opening(t, self.t0, self.size, self.slide)",
        "the_printed_model",
    ),
    Sabotage(
        "what advance has said is over may come at the timestamp that came last",
        "streamdsl/papers/cql/group_clock.py",
        "at[0] < self._over)",
        "at[0] < self._over and at[0] != t)",
        "advance_has_said",
    ),
    Sabotage(
        "of the orders of many simultaneous tuples only some are tried",
        "streamdsl/papers/cql/batch_orders.py",
        "self._chosen[-1] < factorial(size)",
        "self._chosen[-1] < size",
        "allowed_answers",
    ),
    Sabotage(
        "a join stores what has met all its partners",
        "streamdsl/papers/out_of_order/punctuated_join.py",
        "stays = item.ts >= self.horizon(self._bounds[1 - side], side)",
        "stays = item.ts >= self._bounds[1 - side] or self.closed",
        "stores_no_more",
    ),
    Sabotage(
        "a window is complete before punctuation has reached its end",
        "streamdsl/papers/out_of_order/aggregate.py",
        "for wid in self._windows if wid < open_from",
        "for wid in self._windows if wid <= open_from",
        "punctuation_reaches_its_end",
    ),
    Sabotage(
        "a union punctuates as its furthest input does",
        "streamdsl/papers/out_of_order/punctuated_union.py",
        "return self._sent.to(min(bounds), on)",
        "return self._sent.to(max(bounds), on)",
        "union_passes",
    ),
    Sabotage(
        "a row of a window with a slide ends with the slide after its time",
        "streamdsl/sql/spans.py",
        "else size - slide + 1)",
        "else size)",
        "one_per_timestamp and SLIDE",
    ),
    Sabotage(
        "DIF tells equal rows apart",
        "streamdsl/sql/selecting.py",
        "rows = rows.distinct() if difference else rows",
        "rows = rows.distinct() if False else rows",
        "one_per_timestamp and DIF",
    ),
    Sabotage(
        "two aggregates that differ in a text are one",
        "streamdsl/sql/aggregating.py",
        "written = (self._word(word), *rest)",
        "written = (self._word(word), self.text.of(call).lower())",
        "differ_in_a_letter",
    ),
    Sabotage(
        "a range window moves only when a tuple comes",
        "streamdsl/papers/cql/expiry.py",
        "left = self._before(timeline.span[1])",
        "left = self._before(members[-1].t) if members else []",
        "every_window_has_the_states",
    ),
    Sabotage(
        "a row slide goes on counting where a state has formed",
        "streamdsl/papers/cql/slide_policies.py",
        "                self._since = 0\n",
        "                self._since -= self._m\n",
        "every_window_has_the_states",
    ),
    Sabotage(
        "a tuple that leaves while the gate is shut is forgotten",
        "streamdsl/papers/cql/relation_window.py",
        "(change is None or (isinstance(change, Insert) and change.re == INFINITY))",
        "change is None",
        "what_a_window_holds or a_session_gives",
    ),
    Sabotage(
        "SPREAD numbers batches on from the timestamp before",
        "streamdsl/papers/cql/spreading.py",
        "if not self._key or self._key[0] != t:",
        "if not self._key:",
        "spread_makes_the_batches",
    ),
    Sabotage(
        "difference semantics tells lineages apart",
        "streamdsl/papers/cql/relation.py",
        'return self.stream if semantics == "delta" else self.stream.distinct()',
        "return self.stream",
        "differences_of_successive_states",
    ),
    Sabotage(
        "rows wait until after the end of their window",
        "streamdsl/engine/frontiers.py",
        "return end if grid.start(first)",
        "return end + 1 if grid.start(first)",
        "sends_what_it_sends_without_waiting or no_window_ends_and_no_cti_rises",
    ),
    Sabotage(
        "points of windows that close wait on",
        "streamdsl/engine/input_buffer.py",
        "is_before = batch.le < time",
        "is_before = batch.le < time - 1",
        "sent_as_if_they_had_not",
    ),
    Sabotage(
        "points that wait on are forgotten when windows close",
        "streamdsl/engine/input_buffer.py",
        "[later for _, later in split if len(later)]",
        "[later for _, later in split[1:] if len(later)]",
        "sent_as_if_they_had_not",
    ),
    Sabotage(
        "a pair that lies beyond the block is looked for in it",
        "streamdsl/engine/index/pair_index.py",
        "is_within = least(groups) >= self._lowest and largest(groups)",
        "is_within = least(groups) >= self._lowest and least(groups)",
        "equal_pairs_have_one_slot",
        where="unit/engine",
    ),
    Sabotage(
        "rows that wait are forgotten where one comes that cannot",
        "streamdsl/engine/input_buffer.py",
        "        self._batches.append(batch)\n",
        "        self._batches = [batch]\n",
        "sends_what_it_sends_without_waiting or sees_the_rows_that_wait",
    ),
    Sabotage(
        "a stage goes by the shard before it that has come furthest",
        "streamdsl/spark/streaming/input_progress.py",
        "min(self.by_shard.values())",
        "max(self.by_shard.values())",
        "random_queries_in_stages",
    ),
    Sabotage(
        "a static side holds the output back for ever",
        "streamdsl/spark/streaming/shard.py",
        "INFINITY if self.is_bounded else MIN_TIME",
        "MIN_TIME",
        "static_side",
    ),
    Sabotage(
        "rows that have ends but no kinds are points",
        "streamdsl/spark/streaming/shard.py",
        "ends[0] if ends else None",
        "None",
        "rows_without_kinds or come_too_late",
    ),
    Sabotage(
        "what a shard sends is named by its id alone, which it may use again before others have come as far",
        "streamdsl/spark/streaming/wire.py",
        'f"{shard}", table.column("le").cast(pa.string()), ids, "/"',
        'f"{shard}", ids, "/"',
        "id_that_a_shard_uses_again",
    ),
    Sabotage(
        "of the retractions of an id that is used again in a micro-batch only one use is told apart",
        "streamdsl/spark/streaming/shard.py",
        "retracted[event.id, event.le].append(event)",
        "retracted[event.id, 0].append(event)",
        "retractions_of_two_uses",
    ),
    Sabotage(
        "a projection that reads ends goes where ends may still change",
        "streamdsl/sharding/plan_stages.py",
        "return isinstance(node, (Where, Select)) and not reads_re(node)",
        "return isinstance(node, (Where, Select))",
        "what_shards_send and reads and ends",
    ),
    Sabotage(
        "a stage of workers hears of the CTI of one shard only",
        "streamdsl/sharding/sharded_graph.py",
        "min(each.cti for each in self.sent)",
        "max(each.cti for each in self.sent)",
        "workers_send_what_one_session_sends",
    ),
    Sabotage(
        "a shard in a worker begins anew where a checkpoint has its state",
        "streamdsl/sharding/shard_session.py",
        "Checkpoint(state).lay_over(self._shards[place], trust, types)",
        "Checkpoint(state)",
        "workers_send_what_one_session_sends",
    ),
    Sabotage(
        "workers that are more than cores are ended with their session",
        "streamdsl/sharding/workers.py",
        "self._most = max(self._most, n)",
        "pass",
        "workers_are_used_again",
    ),
    Sabotage(
        "workers that have failed for a record go on with the answers of before",
        "streamdsl/sharding/workers.py",
        "        while self._asked and not self.failed:\n",
        "        while False:\n",
        "an_error_of_user_code_in_a_worker",
    ),
    Sabotage(
        "a shard that has taken rows says that its state is as it was",
        "streamdsl/spark/streaming/shard.py",
        '        self._saved = b""\n        if len(out):',
        "        if len(out):",
        "what_shards_send",
    ),
    Sabotage(
        "the delta of a state leaves out what had no place in the one before",
        "streamdsl/spark/streaming/state_delta.py",
        "found = np.ones(",
        "found = np.zeros(",
        "what_is_read_is_what_was_written",
    ),
    Sabotage(
        "a state that has moved is pieced together while its pieces are written over",
        "streamdsl/spark/streaming/state_delta.py",
        "            moved.append((low, state[low + shift : high + shift]))",
        "            state[low:high] = state[low + shift : high + shift]",
        "what_is_read_is_what_was_written",
    ),
    Sabotage(
        "the deltas of a state are kept however large they have become",
        "streamdsl/spark/streaming/state_log.py",
        "if sum(self.sizes) + len(change) <= _GROWTH * len(following):",
        "if True:",
        "what_is_read_is_what_was_written",
    ),
    Sabotage(
        "where a state has moved is not looked up",
        "streamdsl/spark/streaming/state_delta.py",
        "best if counts[best] <= counts[recent[0]] // 2 else recent[0]",
        "recent[0]",
        "micro_batch_of_few_groups",
    ),
    Sabotage(
        "what has gone out is not saved",
        "streamdsl/engine/state/checkpoint.py",
        ', "egress": session._egress}',
        "}",
        "restored_composition",
    ),
    Sabotage(
        "a counter begins anew in a restored session",
        "streamdsl/engine/state/objects.py",
        "list(map(itertools.count, checked(reader.column(content, size), int)))",
        "[itertools.count() for _ in reader.column(content, size)]",
        "restored_session and match",
    ),
    Sabotage(
        "a window that has lost its rows forgets how often its result has come back",
        "streamdsl/engine/columnar/versioned.py",
        "zip(windows, self._versions[slots[at]].tolist(), strict=True)",
        "zip(windows, (0 for _ in at), strict=True)",
        "results_of_a_window_that_has_lost_its_rows",
    ),
    Sabotage(
        "a result shown before its window has ended",
        "streamdsl/engine/operators/columnar_windows.py",
        "self.cells.number[touched] <= self._shown",
        "self.cells.number[touched] <= self._shown + 1",
        "after_every_push and test_window_operators",
    ),
    Sabotage(
        "a row that ends at the CTI is not replayed",
        "streamdsl/engine/published.py",
        "(rows.re_new >= cti)",
        "(rows.re_new > cti)",
        "attached",
    ),
    Sabotage(
        "a row is replayed as it came first",
        "streamdsl/engine/consolidate.py",
        "ends[order[starts]] = changes.re_new[order[lasts]]",
        "ends[order[starts]] = changes.re_new[order[starts]]",
        "attached",
    ),
    Sabotage(
        "rows of a sequence that are forgotten do not count any more",
        "streamdsl/engine/frames/sequence.py",
        "np.add.at(self._dropped, codes[~self._is_over[codes]], 1)",
        "np.add.at(self._dropped, codes[~self._is_over[codes]], 0)",
        "rows_that_are_forgotten_keep_their_positions",
    ),
    Sabotage(
        "the members of a single window stand as they have come",
        "streamdsl/engine/frames/row_members.py",
        "return places[sorted(range(len(places)), key=keys.__getitem__)]",
        "return places",
        "a_module_that_asks_for_an_order_is_given_it_row_by_row",
        where="unit/engine",
    ),
    Sabotage(
        "a lost retraction",
        "streamdsl/engine/sorted/side.py",
        "self.rows.le.take(slots), self.rows.ends(slots))",
        "self.rows.le.take(slots), self.rows.re.take(slots))",
        "reference_says and join",
    ),
    Sabotage(
        "a pair counted from both of its rows",
        "streamdsl/engine/operators/join.py",
        "pairs.take(left.untouched(pairs.others)).swapped()",
        "pairs.swapped()",
        "reference_says and join",
    ),
    Sabotage(
        "a row that may still meet a partner let go",
        "streamdsl/engine/sorted/side.py",
        "self.rows.re.values >= self._least_end",
        "self.rows.re.values > self._least_end",
        "reference_says and join",
    ),
    Sabotage(
        "a single row that ends earlier does not meet those that it has left",
        "streamdsl/engine/operators/join.py",
        "re_old if re_old > re_new else re_new",
        "re_new",
        "scalars_join",
    ),
    Sabotage(
        "a row that waits to go into columns keeps its end",
        "streamdsl/engine/sorted/stored_rows.py",
        "            self._late[place] = id, le, re, *others\n",
        "            pass\n",
        "scalars_join",
    ),
    Sabotage(
        "a left row does not note the single right row that is nearer than what it has",
        "streamdsl/engine/operators/asof_join.py",
        "                self.left.rows.note_one(slot, start)\n",
        "                pass\n",
        "scalars_join",
    ),
    Sabotage(
        "a single row does not meet a piece of its value that ends where it begins",
        "streamdsl/engine/operators/distinct.py",
        "self.pieces.probe_one(number, le - 1, re + 1)",
        "self.pieces.probe_one(number, le, re)",
        "scalars_join",
    ),
    Sabotage(
        "rows are noted in slots in which they are no more",
        "streamdsl/engine/sorted/overlap.py",
        "(places[: self.indexed] >= 0).sum())\n        self._note_anew()\n",
        "(places[: self.indexed] >= 0).sum())\n",
        "scalars_join",
    ),
    Sabotage(
        "a sorted run searched from one place too far",
        "streamdsl/engine/sorted/sorted_run.py",
        "first = np.searchsorted(self._reach, probe.first)",
        'first = np.searchsorted(self._reach, probe.first, side="right")',
        "in_runs",
    ),
    Sabotage(
        "keys that share a block taken for one",
        "streamdsl/engine/sorted/side.py",
        "rows.numbers.take(slots) if self.encoding.mixes else",
        "rows.numbers.take(slots) if False else",
        "in_runs",
    ),
    Sabotage(
        "a CTI too far by one",
        "streamdsl/engine/frontiers.py",
        "return min(cti, grid.start(first))",
        "return min(cti, grid.start(first) + 1)",
        "reference_says and hopping",
    ),
    Sabotage(
        "a full retraction where a Retract would do",
        "streamdsl/temporal/change.py",
        "before = waiting.get((after.le, after.key))",
        "before = waiting.get((after.re, after.key))",
        "rows_are_paired_in_order",
        where="unit/temporal",
    ),
    Sabotage(
        "a dead row forgotten too early",
        "streamdsl/engine/sorted/side.py",
        "return max(self._cti, MIN_TIME + 1)",
        "return max(self._cti + 1, MIN_TIME + 1)",
        "reference_says and clip_by",
    ),
    Sabotage(
        "state purged on the CTI of one side alone",
        "streamdsl/engine/operator.py",
        "cti = min(ctis)",
        "cti = max(ctis)",
        "reference_says and (join or clip_by)",
    ),
    Sabotage(
        "a final row sent while its end may still change",
        "streamdsl/engine/frontiers.py",
        "return cti if cti in (MIN_TIME, INFINITY) else cti - CHRONON",
        "return cti",
        "what_final_sends_stays",
    ),
    Sabotage(
        "a snapshot that ends at the CTI is taken for final",
        "streamdsl/engine/frontiers.py",
        "else cti - CHRONON",
        "else cti",
        "nothing_that_is_final or what_final_sends",
    ),
    Sabotage(
        "final results of windows wait for the output CTI",
        "streamdsl/engine/frontiers.py",
        "        return closed\n",
        "        return UNKNOWN\n",
        "nothing_that_is_final",
    ),
    Sabotage(
        "a pair is final when one of its rows is",
        "streamdsl/engine/operators/join.py",
        "return min([of_same_ends(each, self.cti) for each in inputs])",
        "return max([each.final for each in inputs])",
        "what_final_sends_stays",
    ),
    Sabotage(
        "a held row that is taken back stays in its column",
        "streamdsl/engine/held_rows.py",
        "        self._is_there[place] = False\n",
        "",
        "rows_in_columns",
    ),
    Sabotage(
        "pieces that are not maximal",
        "streamdsl/engine/sorted/pieces.py",
        "touching(Probe(numbers, stretches.lo, stretches.hi))",
        "Probe(numbers, stretches.lo, stretches.hi)",
        "reference_says and anti_join",
    ),
    Sabotage(
        "a changed run not followed to its end",
        "streamdsl/engine/operators/match.py",
        "if runs == known:",
        "if True:",
        "reference_says and match",
    ),
    Sabotage(
        "a right row as near as another is forgotten",
        "streamdsl/engine/operators/nearness.py",
        "right >= best if self.looks_back else right <= best",
        "right > best if self.looks_back else right < best",
        "reference_says and asof_join",
    ),
    Sabotage(
        "a row let go while another like it may still end",
        "streamdsl/engine/operators/scan.py",
        "enumerate(line.re[: line.settled]) if re >= self._cti]",
        "enumerate(line.re[: line.settled]) if re > self._cti]",
        "reference_says and scan",
    ),
    Sabotage(
        "a calendar that keeps the first row's place",
        "streamdsl/engine/operators/calendar.py",
        "if starts[le] <= 0:",
        "if starts[le] < 0:",
        "reference_says and fill",
    ),
    Sabotage(
        "a window closed one too early",
        "streamdsl/engine/operators/columnar_windows.py",
        "self.cells.pop_until(self._first - 1)",
        "self.cells.pop_until(self._first)",
        "after_every_push and test_window_operators",
    ),
    Sabotage(
        "a row that ends where a window starts is a member of it",
        "streamdsl/engine/frames/grid.py",
        "self.numbers.after_last(le, np.where(is_endless, le, re))",
        "self.numbers.after_last(le, np.where(is_endless, le, re + 1))",
        "reference_says and buffered_windows",
    ),
    Sabotage(
        "a row that may still be lengthened is swept",
        "streamdsl/engine/frames/grid.py",
        "needed: NDArray[np.bool_] = re >= cti",
        "needed: NDArray[np.bool_] = re > cti",
        "reference_says and buffered_windows",
    ),
    Sabotage(
        "what leaves a window stays in its state",
        "streamdsl/engine/frames/states.py",
        "(np.setdiff1d(before, after, True), np",
        "(np.setdiff1d(before, before, True), np",
        "states_are_those",
    ),
    Sabotage(
        "a snapshot forgotten whose end may still move",
        "streamdsl/engine/data_driven/timeline.py",
        "slots[(re >= cti) &",
        "slots[(re > cti) &",
        "after_every_push and data_driven_operators",
    ),
    Sabotage(
        "a boundary inside a window that begins without its sums",
        "streamdsl/engine/data_driven/sweep.py",
        "self.boundaries.totals.copy(self.portion.slots[at[has]], self.portion.slots[latest[has]])",
        "self.boundaries.totals.clear(self.portion.slots[at[has]])",
        "after_every_push and data_driven_operators",
    ),
    Sabotage(
        "an id that is used again is the one before, in columns",
        "streamdsl/engine/ids.py",
        "return map(incarnation_of, super().spelled())",
        "return iter(self.columns[0].tolist())",
        "in_the_sink",
    ),
    Sabotage(
        "an id goes out again as soon as its source has let it go",
        "streamdsl/engine/running_query.py",
        "return len(sources) == 1 and is_obeyed and all(operator.passes_ctis for operator in self._graph.operators)",
        "return True",
        "in_the_sink",
    ),
    Sabotage(
        "a sender's number is the number of a row of a frame",
        "streamdsl/engine/numbering.py",
        "self._called[id] = RowVersion(id, 1)",
        "self._called[id] = id",
        "in_the_sink",
    ),
    Sabotage(
        "a push that was cut short is no failure",
        "streamdsl/engine/query_session.py",
        "        self._is_changing = True\n        try:\n",
        "        try:\n",
        "interrupted",
    ),
    Sabotage(
        "a push that is refused leaves something behind",
        "streamdsl/temporal/event_table.py",
        "        self._late.clear()\n        self._new_expirations.clear()\n\n    def _expire_at",
        "        self._late.clear()\n\n    def _expire_at",
        "in_the_sink",
    ),
    Sabotage(
        "a row in columns whose LE became the CTI keeps its LE",
        "streamdsl/engine/ingress.py",
        "starts = np.where(moved, ctis, le)[rows]",
        "starts = le[rows]",
        "late_rows_of_a_frame",
        where="unit/contract",
    ),
    Sabotage(
        "rows of a table are told apart by their ids alone",
        "streamdsl/sinks/row_changes.py",
        'KEY: Final = ("id", "le")',
        'KEY: Final = ("id",)',
        "in_the_sink",
    ),
    Sabotage(
        "a table has no column for a field that is named as one of the engine's once was",
        "streamdsl/sinks/row_changes.py",
        'CONTROL: Final = ("kind", "re_new")',
        'CONTROL: Final = ("kind", "re_new", "shard")',
        "in_the_sink",
    ),
    Sabotage(
        "a column whose type is not known yet is one of texts",
        "streamdsl/sinks/statements.py",
        "if not pa.types.is_null(field.type)]",
        "if True]",
        "in_the_sink",
    ),
    Sabotage(
        "a database that has no decimals makes floats of them",
        "streamdsl/sinks/sql_values.py",
        '"sqlite": (0, 0)',
        '"sqlite": (99, 99)',
        "in_the_sink",
    ),
    Sabotage(
        "a bare payload is a row of one field where a lambda is called",
        "streamdsl/expr/schema.py",
        "return TupleRow(payload) if isinstance(payload, tuple) else payload\n",
        "return TupleRow(payload) if isinstance(payload, tuple) else TupleRow((payload,))\n",
        "in_the_sink",
    ),
    Sabotage(
        "a file that has another name now is taken again",
        "streamdsl/jobs/ledger.py",
        "return list(_not_renamed(left, [entry for entry in (*self.taken, *self.refused) if entry not in there]))",
        "return left",
        "each_once",
    ),
    Sabotage(
        "files are told apart as they are spelled",
        "streamdsl/jobs/input_files.py",
        "(stat.st_dev, stat.st_ino), InputFile(",
        "(stat.st_dev, len(found)), File(",
        "each_once",
    ),
    Sabotage(
        "a job that goes on does not give the sinks what they lack",
        "streamdsl/connect/runner.py",
        "        self._batches.resume()\n",
        "",
        "tables_are_exact_however",
    ),
    Sabotage(
        "a job that goes on does not give the side sinks what they lack",
        "streamdsl/connect/runner.py",
        "            each.resume(self._ledger.last, self._batches.stream)\n",
        "            pass\n",
        "tables_are_exact",
    ),
    Sabotage(
        "a job reads its sources from their begin again",
        "streamdsl/connect/runner.py",
        "source.open(last.positions.get(name))",
        "source.open(None)",
        "tables_are_exact_however",
    ),
    Sabotage(
        "sinks get a micro-batch before it is committed",
        "streamdsl/connect/commits.py",
        "        record(batch)\n",
        "        self._outbox.deliver(batch, table, self.stream)\n        record(batch)\n",
        "tables_are_exact_however",
    ),
    Sabotage(
        "two processes use one checkpoint",
        "streamdsl/io/locks.py",
        "            while not _is_locked(number):\n",
        "            while False:\n",
        "each_once or two_processes",
    ),
    Sabotage(
        "a field is lost whose name differs from another one's in case alone",
        "streamdsl/sinks/names.py",
        "{name.lower() for name in taken} | _SYSTEM",
        "set(taken) | _SYSTEM",
        "every_field_has_a_column",
        where="unit/sinks",
    ),
    Sabotage(
        "a name in generated code ends where it has a quote",
        "streamdsl/temporal/identifiers.py",
        "return ascii(exact(name))",
        "return f\"'{name}'\"",
        "field_of_any_name",
    ),
    Sabotage(
        "a row that comes alone keeps names that are texts by inheritance",
        "streamdsl/expr/row_program.py",
        "        if not PLAIN.issuperset(map(type, payload)):\n            return None\n",
        "",
        "comes_alone_has_plain_names",
    ),
    Sabotage(
        "a row without a time is left out",
        "streamdsl/io/times.py",
        "        if self.nulls.any():\n",
        "        if False:\n",
        "in_the_sink",
    ),
    Sabotage(
        "a column re of a frame is a field",
        "streamdsl/temporal/lifetime_columns.py",
        'return LifetimeColumns(self.start, "re") if self == DEFAULT and "re" in names else self',
        "return self",
        "in_the_sink",
    ),
    Sabotage(
        "a table goes on without the files that it has lost",
        "streamdsl/sinks/table_files.py",
        '        TableFolder(self.path, None, files=last["files"]).check()\n',
        "",
        "what_is_lost",
    ),
    Sabotage(
        "what the system says of a full disk comes raw",
        "streamdsl/sinks/commit_file.py",
        "except (OSError, pa.ArrowException, *others)",
        "except (pa.ArrowException, *others)",
        "in_the_sink",
    ),
    Sabotage(
        "a checkpoint may name any class that there is",
        "streamdsl/engine/state/classes.py",
        "if cls is None and self._anywhere else cls",
        "if cls is None else cls",
        "in_the_sink",
    ),
    Sabotage(
        "a function that returns nothing lets no row through",
        "streamdsl/expr/predicates.py",
        "if value is None or not (hasattr",
        "if not (hasattr",
        "in_the_sink",
    ),
    Sabotage(
        "modules are tried on numbers of one magnitude",
        "streamdsl/testing/subject.py",
        "WIDE if wide else VALUES",
        "VALUES",
        "until_numbers_windows",
        where="unit/testing",
    ),
    Sabotage(
        "ends that an id does not have any more are remembered",
        "streamdsl/temporal/event_table.py",
        "        self._compact_expirations()\n",
        "",
        "leaves_nothing_however_often",
    ),
    Sabotage(
        "one long row makes as many windows as fit into memory",
        "streamdsl/engine/limits.py",
        "> max(self._most, PER_ROW * arrivals.rows)",
        "> 10**18",
        "push_of_too_many_windows_is_undone",
        where="unit/engine",
    ),
    Sabotage(
        "a point that is out stays where its window waits for its end again",
        "streamdsl/engine/operators/data_driven_windows.py",
        "return (le < self.cti) & (not self._is_at_end)",
        "return le < self.cti",
        "last_as_long",
    ),
    Sabotage(
        "a point follows its window's end as a result does that lasts as long",
        "streamdsl/engine/operators/driver.py",
        "if self._is_at_end and len(moved):",
        "if False:",
        "last_as_long",
    ),
    Sabotage(
        "results that have lifetimes of their own are the same wherever they begin",
        "streamdsl/engine/operators/applied.py",
        "if self.node.time_sensitive or self._is_at_end:\n            codes",
        "if self._is_at_end:\n            codes",
        "last_as_long",
    ),
    Sabotage(
        "a result that waits again keeps its state",
        "streamdsl/engine/operators/framed_windows.py",
        "        is_stale[touched.slots] |= ~self.table.results.is_emitted[touched.slots]\n",
        "",
        "waits_again",
    ),
    Sabotage(
        "a window that was part of another before begins with the state of that one as it is now",
        "streamdsl/engine/frames/states.py",
        "ends[new], has_one[new] = table.results.re[before], table.results.is_emitted[before]",
        "has_one[new] = table.results.is_emitted[before]",
        "split_before_it_is_out or states_are",
    ),
    Sabotage(
        "an operator's results that end elsewhere are remembered as they were",
        "streamdsl/engine/operators/applied.py",
        "        results.re[moved] = table.re[moved]\n",
        "",
        "results_of_operators_end",
    ),
    Sabotage(
        "a result is paired with one that another is paired with",
        "streamdsl/engine/columnar/pairing.py",
        "np.arange(len(order)) - starts < numbers[ordered]",
        "numbers[ordered] > 0",
        "results_of_operators_end",
    ),
    Sabotage(
        "a new result has a number that one of its window has kept",
        "streamdsl/engine/columnar/pairing.py",
        "is_free[starts[windows[inside]] + taken[inside]] = False",
        "is_free[taken[inside]] = False",
        "results_of_operators_end or two_results_of_operators",
    ),
    Sabotage(
        "a number that a result has had comes back as it was",
        "streamdsl/engine/operators/applied.py",
        "versions, ordinals, at = results.versions(slots),",
        "versions, ordinals, at = 0 * results.versions(slots),",
        "two_results_have_one_id",
    ),
    Sabotage(
        "the first of equal rows has a rank of its own",
        "streamdsl/engine/buffered/ranked.py",
        "is_first = np.append(True, values[1:] != values[:-1])[: len(at)]",
        "is_first = np.append(True, values[1:] >= values[:-1])[: len(at)]",
        "queries_mean_what and (texts or ranks)",
    ),
    Sabotage(
        "equal rows are not looked at all at once",
        "streamdsl/engine/buffered/ranked.py",
        'stop = int(np.searchsorted(ordered, ordered[min(stop, len(ordered)) - 1], side="right"))',
        "stop = min(stop, len(ordered))",
        "largest_rows_of_windows",
    ),
    Sabotage(
        "rows without a value are ranked",
        "streamdsl/engine/buffered/ranked.py",
        "at = flatnonzero(np.array([value is not None for value in listed], dtype=np.bool_))",
        "at = np.arange(len([value for value in listed if value is not None]))",
        "queries_mean_what and (texts or ranks)",
    ),
    Sabotage(
        "payloads inside of payloads that were taken go with others",
        "streamdsl/engine/growing.py",
        "nested(self._rows.snapshot())[rows]",
        "nested(Table(self._rows.schema, _Taken(self._rows._columns, np.arange(self._rows.size)), self._rows.size))[rows]",
        "what_was_taken_stays",
    ),
    Sabotage(
        "a place from the end of a payload is one from its start",
        "streamdsl/expr/nested.py",
        "return names[item] if",
        "return names[max(item, 0)] if",
        "are_told_what_they_are_told",
    ),
    Sabotage(
        "a field that records have a method by the name of is an attribute",
        "streamdsl/expr/nested.py",
        "(schema.shape is Shape.RECORD and not is_taken(name))",
        "(schema.shape is Shape.RECORD)",
        "are_told_what_they_are_told",
    ),
    Sabotage(
        "a state that is shared is merged into the first window alone",
        "streamdsl/engine/buffered/modules.py",
        "states[first:last] = merged",
        "states[first:last] = [*merged[:1], *states[first + 1 : last]]",
        "state_that_windows_share",
    ),
    Sabotage(
        "a window that is gone forgets how often its result has come back",
        "streamdsl/engine/frames/window_table.py",
        "        self.results.leave(slots, self.le[slots], self.code[slots])\n",
        "",
        "one_id or versions_of_their_own",
    ),
    Sabotage(
        "a partition of which a result is gone holds its output CTI back",
        "streamdsl/engine/frames/snapshot.py",
        "needed = self.needed_codes(cti, rows)",
        "needed = self.held_codes(cti, rows)",
        "holds_no_cti_back",
    ),
    Sabotage(
        "versions of windows that may come back are forgotten with the others",
        "streamdsl/engine/columnar/versioned.py",
        "if window[0] >= first}",
        "if window[0] > first}",
        "a_window_that_comes_back_at_a_cti",
    ),
    Sabotage(
        "windows of modules that see ends wait for all partitions, and their rows are let go before",
        "streamdsl/engine/operators/framed_windows.py",
        "waits = not node.sees_ends and ",
        "waits = ",
        "windows_of_modules_that_see_ends_are_out",
    ),
    Sabotage(
        "the least value of a window is kept though its row has left",
        "streamdsl/engine/frames/states.py",
        "            is_known &= gone.sizes == 0\n",
        "            pass\n",
        "after_every_push and framed_windows or after_every_push and buffered_windows or states_are_those",
    ),
    Sabotage(
        "an equal value further back is forgotten where distinct ones are counted",
        "streamdsl/engine/buffered/holistic.py",
        "first[1:] = np.maximum(first[1:], reached[:-1])",
        "first[1:] = np.maximum(first[1:], last[:-1])",
        "counts_once_where_one_that_lasts",
    ),
    Sabotage(
        "what leaves a window stays in its sums",
        "streamdsl/engine/frames/states.py",
        "for members, sign in ((gone, -1), (come, 1)):",
        "for members, sign in ((come, 1),):",
        "after_every_push and framed_windows or after_every_push and buffered_windows or states_are_those",
    ),
    Sabotage(
        "a session that has lost a row counts as whole",
        "streamdsl/engine/frames/session.py",
        "        is_whole[broken] = False\n",
        "        broken = broken[:0]\n",
        "after_every_push and framed_windows or after_every_push and buffered_windows or states_are_those",
    ),
    Sabotage(
        "long windows are looked through again",
        "streamdsl/engine/operators/framed_windows.py",
        "            are_long[:] = False\n        long",
        "            pass\n        are_long[:] = are_long & (least_rows == 0)\n        long",
        "a_window_that_grows",
    ),
    Sabotage(
        "a look at a table that is cut short tells that the table is gone",
        "streamdsl/sinks/statements.py",
        "            if not _is_missing_object(error.__cause__):\n",
        "            if False:\n",
        "a_look_at_a_table_that_is_cut_short",
    ),
    Sabotage(
        "a bad file is passed though nobody has asked for it",
        "streamdsl/jobs/bad_files.py",
        'if job.bad_files != "skip":',
        "if False:",
        "a_bad_file_is_named",
        where="unit/jobs",
    ),
    Sabotage(
        "a batch job writes under its output's name from the first row on",
        "streamdsl/jobs/atomic_output.py",
        "        yield path\n",
        "        yield output\n",
        "a_batch_job_that_is_killed",
        where="unit/jobs",
    ),
    Sabotage(
        "a micro-batch that a table has already is not run, so that Spark lacks the state of its shards",
        "streamdsl/spark/sinks.py",
        'frame.write.format("noop").mode("overwrite").save()',
        "return",
        "tables_hold_each_row_once_though",
        where="spark",
    ),
    Sabotage(
        "a meter compares moments with ticks",
        "streamdsl/spark/stream_metrics.py",
        "struct(shard, {ticks} as le)",
        "struct(shard, le)",
        "a_watermark_of_spark_is_a_policy",
        where="spark",
    ),
    Sabotage(
        "settings are believed that explain what they were chosen by",
        "streamdsl/papers/secret/inference.py",
        "        while self._windows:\n",
        "        while False:\n",
        "an_engine_that_is_no_profile",
    ),
    Sabotage(
        "engines are asked only when all windows have begun, where a first one is as good as a grid",
        "streamdsl/papers/secret/search.py",
        "range(size) if number % 3 == 0 else firsts",
        "firsts",
        "what_is_believed_answers",
    ),
    Sabotage(
        "late events are kept, all of them",
        "streamdsl/temporal/rejected.py",
        "deque(maxlen=kept)",
        "deque()",
        "late_events_leave",
    ),
    Sabotage(
        "frames of a source that drops late events are judged row by row",
        "streamdsl/engine/ingress.py",
        'if ctis is not None and self.source.on_violation == "error":',
        'if ctis is not None or self.source.on_violation != "error":',
        "a_policy_for_late_events",
    ),
    Sabotage(
        "a key of several parts is matched by one of them where the other side has a key of one",
        "streamdsl/engine/operators/matching.py",
        "if isinstance(left, Make) and isinstance(right, Make) and left.schema == right.schema:",
        "if isinstance(left, Make) or isinstance(right, Make):",
        "rows_are_matched_by_keys",
    ),
    Sabotage(
        "the end of a snapshot whose members stay moves only when its result changes",
        "streamdsl/engine/frames/frame.py",
        "touched = flatnonzero(summed | moved)",
        "touched = flatnonzero(summed)",
        "after_every_push and framed_windows or after_every_push and buffered_windows or states_are_those",
    ),
    Sabotage(
        "a member that ends elsewhere inside of its window stays in a state of lifetimes as it was",
        "streamdsl/engine/frames/states.py",
        "left, came = np.concatenate([left, stay]), np.concatenate([came, stay])",
        "pass",
        "a_time_sensitive_module_sees_a_change",
    ),
    Sabotage(
        "a state of lifetimes is kept though its window ends elsewhere",
        "streamdsl/engine/frames/states.py",
        "is_known &= ~self._changes.have_moved(slots)",
        "pass",
        "a_counted_window_that_ends_elsewhere",
    ),
    Sabotage(
        "a window that another one takes in has changed when that one did later",
        "streamdsl/engine/operators/applied.py",
        "slots[is_emitted] if self.frame.starts_move else np.concatenate([gone, slots[is_emitted]])",
        "np.concatenate([gone, slots[is_emitted]])",
        "gone_as_another_takes_it_in",
    ),
    Sabotage(
        "a result may change before what causes it",
        "streamdsl/engine/operators/applied.py",
        "early = flatnonzero(causes[rows.slots] > differs)",
        "early = flatnonzero(causes[rows.slots] > INFINITY)",
        "a_breach_is_found",
    ),
    Sabotage(
        "the cause of a change is what the rows are now, not what they were",
        "streamdsl/engine/frames/causes.py",
        "for re in (changed.re_old, changed.re_new)]",
        "for re in (changed.re_new,)]",
        "a_breach_is_found",
    ),
    Sabotage(
        "results of time-bound operators that wait hold no CTI back",
        "streamdsl/engine/operators/applied.py",
        "return self._first_held() if self.emit_policy.by_end else INFINITY",
        "return INFINITY",
        "whose_windows_wait_holds_its_cti_back",
    ),
    Sabotage(
        "an operator has no way to run",
        "streamdsl/engine/lower.py",
        '    SemiJoin: ("existence", "SemiJoinOperator"),\n',
        "",
        "what_the_reference_says_after_every_push and semi_join",
    ),
    Sabotage(
        "an operator has no meaning",
        "streamdsl/denote/__init__.py",
        "source, grouping, span, windowed, pattern_matches, combining",
        "source, grouping, span, windowed, combining",
        "the_tables_have_every_node",
        where="architecture",
    ),
    Sabotage(
        "a kind of windows has no frame",
        "streamdsl/engine/frames/__init__.py",
        "{windows.kind.title().replace('_', '')}Frame",
        "{windows.kind.title()}Frame",
        "after_every_push and framed_windows or after_every_push and buffered_windows or states_are_those",
    ),
    Sabotage(
        "a row of a scan that ends at the CTI is forgotten",
        "streamdsl/engine/operators/scan.py",
        "if re >= self._cti]",
        "if re > self._cti]",
        "reference_says and scan",
    ),
    Sabotage(
        "an instant of a pattern at the CTI is forgotten",
        "streamdsl/engine/operators/match.py",
        "track.instants.peekitem(0)[0] < cti:",
        "track.instants.peekitem(0)[0] <= cti:",
        "reference_says and match",
    ),
    Sabotage(
        "a window that ends a tick after those that are closed is forgotten",
        "streamdsl/engine/frames/frame.py",
        "kept: NDArray[np.bool_] = self.table.re[slots] > self.closed_until(cti, rows)[self.table.code[slots]]",
        "kept: NDArray[np.bool_] = self.table.re[slots] > self.closed_until(cti, rows)[self.table.code[slots]] + 1",
        "reference_says and windows",
    ),
    Sabotage(
        "the groups that an operator holds are forgotten",
        "streamdsl/engine/lower.py",
        "            table.keep(numbers)\n",
        "            table.keep(numbers[1:])\n",
        "come_and_go or known_until_the_window_closes or one_by_one",
    ),
    Sabotage(
        "groups are never forgotten",
        "streamdsl/engine/lower.py",
        "            table.keep(numbers)\n",
        "            pass\n",
        "keys_that_are_gone",
    ),
    Sabotage(
        "keys of a join are never forgotten",
        "streamdsl/engine/operators/keyed_operator.py",
        "if self.numbers is not None and self.numbers.is_due:",
        "if False:",
        "keys_that_are_gone and join",
    ),
    Sabotage(
        "numbers of keys are forgotten while rows of the other side are held",
        "streamdsl/engine/operators/keyed_operator.py",
        "side.rows.numbers.values for side in self.sides]",
        "side.rows.numbers.values for side in self.sides[:1]]",
        "that_come_back_are_those and join",
    ),
    Sabotage(
        "groups are forgotten while windows of theirs are held",
        "streamdsl/engine/operators/data_driven_windows.py",
        "return iter(self.codes)",
        "return iter(())",
        "that_come_back_are_those and session",
    ),
    Sabotage(
        "rows of a join are never dropped",
        "streamdsl/engine/sorted/side.py",
        "        if self.earn_cleanup_credit() >= self.cleanup_cost():\n            self.sweep(self.needed())\n",
        "        pass\n",
        "memory_is_flat",
    ),
    Sabotage(
        "windows are never dropped",
        "streamdsl/engine/frames/frame.py",
        "        self.table.keep(self.is_kept(cti, rows, self.table.all()))\n",
        "",
        "memory_is_flat or what_is_kept_follows",
    ),
    Sabotage(
        "groups of a scan are never forgotten",
        "streamdsl/engine/operators/scan.py",
        "                del self.lines[group]\n",
        "                pass\n",
        "keys_that_are_gone and scan",
    ),
    Sabotage(
        "keys of a pattern are never forgotten",
        "streamdsl/engine/operators/match.py",
        "            del self.tracks[key]\n",
        "            pass\n",
        "keys_that_are_gone and match",
    ),
    Sabotage(
        "states of modules are kept when their windows are dropped",
        "streamdsl/engine/frames/window_table.py",
        "            column[slots] = None\n",
        "            pass\n",
        "states_of_windows_that_are_gone",
    ),
    Sabotage(
        "an hour is lost where clocks go back",
        "streamdsl/expr/datetimes.py",
        "return instant.astimezone(zone_of(zone))",
        "return instant.astimezone(zone_of(zone)).replace(fold=0)",
        "no_hour_is_lost",
    ),
    Sabotage(
        "a time rounded down is the first of two that clocks show",
        "streamdsl/expr/datetimes.py",
        "return (time - rest).replace(fold=time.fold)",
        "return (time - rest).replace(fold=0)",
        "no_hour_is_lost",
    ),
    Sabotage(
        "ticks of nanoseconds are counted as microseconds",
        "streamdsl/expr/datetimes.py",
        "time * 10**6 // PER_SECOND[unit]",
        "time * 10**3 // min(PER_SECOND[unit], 10**6) * 10**3",
        "no_hour_is_lost",
    ),
    Sabotage(
        "a duration in nanoseconds is counted in microseconds",
        "streamdsl/temporal/time.py",
        'ticks = seconds * PER_SECOND[unit or "us"]',
        'ticks = seconds * min(PER_SECOND[unit or "us"], 10**6)',
        "exact_ticks",
        where="unit/temporal",
    ),
    Sabotage(
        "microseconds of a timedelta are milliseconds",
        "streamdsl/temporal/time.py",
        "Fraction(delta.microseconds, 10**6)",
        "Fraction(delta.microseconds, 10**3)",
        "exact_ticks",
        where="unit/temporal",
    ),
    Sabotage(
        "a lineage leaves out a member of a window",
        "streamdsl/debugger/lineage.py",
        "completed([(0, row.place) for row in members])",
        "completed([(0, row.place) for row in members[:-1]])",
        "each_row_of_a_lineage",
    ),
    Sabotage(
        "the debugger leaves out rows that an answer needs besides its lineage",
        "streamdsl/debugger/moment.py",
        "context = smallest(others, lambda part: self.gives(row, self._in_order([*kept, *part])))",
        "context = []",
        "the_causes_of_a_row_are_sufficient",
    ),
    Sabotage(
        "versions of names meet those that rows have as their names",
        "streamdsl/engine/versions.py",
        "while (made := RowVersion(name, version)) in self._taken:",
        "while (made := RowVersion(name, version)) in ():",
        "a_version_of_a_name",
        where="unit/engine",
    ),
    Sabotage(
        "a semi join says that it removes rows for the sake of others",
        "streamdsl/plan/nodes/combining.py",
        'removes = "rows without others"',
        'removes = "rows with others"',
        "removes_rows",
    ),
    Sabotage(
        "an as-of join does not say that it shows rows without a match",
        "streamdsl/plan/nodes/combining.py",
        "return self.outer",
        "return False",
        "shows_unmatched",
    ),
    Sabotage(
        "a count of a predicate that could not be traced counts every row",
        "streamdsl/udm/counted_values.py",
        "if isinstance(value, (bool, np.bool_)):",
        "if isinstance(value, np.bool_):",
        "a_predicate_that_could_not_be_traced",
    ),
)


@contextmanager
def copied(root: Path, copy: Callable[[str, str], object] = os.link) -> Iterator[Path]:
    """Give a copy of what the laws need; of a copy, one that shares its files, so that only the sabotage makes one of its own."""
    with tempfile.TemporaryDirectory(prefix="sabotage-") as folder:
        for part in ("streamdsl", "tests"):
            shutil.copytree(root / part, Path(folder) / part, copy_function=copy)
        copy(str(root / "pyproject.toml"), str(Path(folder) / "pyproject.toml"))
        yield Path(folder)


@contextmanager
def compiled() -> Iterator[Path]:
    """Give a copy whose modules are compiled, so that no copy of it has to compile more than its sabotage."""
    with copied(ROOT, shutil.copy2) as folder:
        compileall.compile_dir(folder, quiet=2, workers=WORKERS)
        yield folder


class Outcome(NamedTuple):
    """What is wrong with a sabotage, or None if it was noticed: by which test, with how many examples, and in which time."""

    problem: str | None
    test: str = ""
    examples: str = ""
    seconds: float = 0.0


class Note(NamedTuple):
    """Which test noticed a sabotage, with how many examples, and the digest of the files as they were."""

    test: str
    examples: str
    digest: str


@cache
def recorded() -> dict[str, Note]:
    return {name: Note(*note) for name, note in json.loads(RECORD.read_text()).items()}


@cache
def text_of(file: str) -> str:
    path = ROOT / file
    return path.read_text() if path.exists() else ""


@cache
def shared_text(where: str) -> str:
    """Return the text of all that tests share: how their inputs are drawn, and what holds whole kinds of operators."""
    files = (file for part in sorted({"laws", "operators", where}) for file in sorted((ROOT / "tests" / part).rglob("*.py")))
    return "".join(file.read_text() for file in files if not file.name.startswith("test_"))


def digest(sabotage: Sabotage, test: str) -> str:
    """Return a hash of a sabotage, the file that it breaks, the file of a test, and what tests share."""
    texts = sabotage.old, sabotage.new, text_of(sabotage.file), text_of(test.partition("::")[0])
    return hashlib.sha256("\0".join([*texts, shared_text(sabotage.where)]).encode()).hexdigest()[:16]


def has_changed(sabotage: Sabotage) -> bool:
    """Say whether a sabotage has no note, or one that was taken of other files."""
    note = recorded().get(sabotage.name)
    return note is None or note.digest != digest(sabotage, note.test)


def tries(sabotage: Sabotage) -> Iterator[tuple[list[str], str]]:
    """Yield which tests are run, and with how many examples, until one fails."""
    if note := recorded().get(sabotage.name):
        yield [note.test], note.examples
    for examples in dict.fromkeys((sabotage.examples, MANY)):
        yield [*files_of(sabotage.tests, sabotage.where), "-k", sabotage.tests], examples


def attempt(whole: Path, sabotage: Sabotage) -> Outcome:
    """Return whether the laws notice a sabotage. Where the test that did so last is gone, or passes, all are asked."""
    start, code = time.monotonic(), 0
    with copied(whole) as folder:
        target = folder / sabotage.file
        text = target.read_text()
        target.unlink()
        target.write_text(text.replace(sabotage.old, sabotage.new))
        for tests, examples in tries(sabotage):
            code = run_laws(folder, tests, examples)
            if code == 1:
                return Outcome(None, (folder / FAILED).read_text(), examples, time.monotonic() - start)
        return Outcome("the laws still pass" if code == 0 else f"the laws did not run:\n{report(folder)}")


def misplaced(sabotage: Sabotage) -> str | None:
    """Return what is wrong with the place of a sabotage, if anything."""
    count = text_of(sabotage.file).count(sabotage.old)
    return None if count == 1 else f"{sabotage.name}: its text is in {sabotage.file} {count} times, not once"


def control(whole: Path, chosen: Sequence[Sabotage]) -> str | None:
    """Return why the laws fail without any sabotage, or None if they pass, as they must: a few examples tell that they run.

    Asked is what sabotages are asked first: the tests that are noted, and all that a sabotage without a note names.
    """
    notes = recorded()
    noted = {notes[each.name].test for each in chosen if each.name in notes}
    others = [each for each in chosen if each.name not in notes]
    files = sorted({file for each in others for file in files_of(each.tests, each.where)})
    expression = " or ".join(f"({expression})" for expression in sorted({each.tests for each in others}))
    with copied(whole) as folder:
        codes = [run_laws(folder, sorted({test.partition("::")[0] for test in noted}), FEW, [Only(noted)])] if noted else []
        codes += [run_laws(folder, [*files, "-k", expression], FEW)] if others else []
        return f"the laws fail without any sabotage:\n{report(folder)}" if any(codes) else None


def files_of(tests: str, where: str) -> list[str]:
    """Return the files with tests that an expression may choose: each of its alternatives begins with a part of a test's name."""
    names = [re.findall(r"\w+", part)[0] for part in tests.split(" or ")]
    law = re.compile(rf"def test_\w*({'|'.join(names)})")
    files = [file for file in sorted((ROOT / "tests" / where).rglob("test_*.py")) if law.search(file.read_text())]
    assert files, f"no test below tests/{where} has a name with {' or '.join(names)}"
    return [str(file.relative_to(ROOT)) for file in files]


class Noting:
    """A plugin of pytest that writes which test has failed."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.file.write_text(report.nodeid)


class Only:
    """A plugin of pytest that runs no other tests than these; one of them that is gone is no error."""

    def __init__(self, chosen: Collection[str]) -> None:
        self.chosen = chosen

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.chosen]


@hypothesis.settings(max_examples=1, database=None)
@hypothesis.given(hypothesis.strategies.none())
def warm(_: None) -> None:
    """Let hypothesis look through the modules that are there before any run of laws: it looks at each only once."""


def run_laws(folder: Path, tests: Sequence[str], examples: str, plugins: Sequence[object] = ()) -> int:
    """Return how a test run over the copy in a folder ends: in a child of this process, which has what the tests import.

    The child has nothing of the project itself: that comes from the folder.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 3
    try:
        with (folder / LOG).open("wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        for name in [name for name in sys.modules if name.split(".")[0] in ("streamdsl", "tests")]:
            del sys.modules[name]
        os.chdir(folder)
        os.environ |= {"PYTHONPATH": str(folder), "LAW_EXAMPLES": examples, "LAW_SHRINK": "0"}
        sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", str(ROOT)))]
        asked = ["-q", "-x", "--assert=plain", "-p", "no:cacheprovider", *tests]
        code = int(pytest.main(asked, plugins=[Noting(folder / FAILED), *plugins]))
        import streamdsl

        code = code if Path(streamdsl.__file__).is_relative_to(folder) else 3
    finally:
        sys.stdout.flush()
        os._exit(code)


def report(folder: Path) -> str:
    return (folder / LOG).read_text()[-4000:]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sabotage", description="Break the engine; the laws must notice.")
    parser.add_argument("names", nargs="*", help="of these sabotages only")
    parser.add_argument("--record", action="store_true", help="note which test noticed each, which is then asked first")
    parser.add_argument("--changed", action="store_true", help="only those of which a file has changed since that was noted")
    arguments = parser.parse_args()
    if problems := list(filter(None, map(misplaced, SABOTAGES))):
        print("\n".join(problems))
        return 1
    chosen = [sabotage for sabotage in SABOTAGES if not arguments.names or sabotage.name in arguments.names]
    named = len(chosen)
    chosen = [sabotage for sabotage in chosen if not arguments.changed or has_changed(sabotage)]
    warm()
    with compiled() as whole, ProcessPoolExecutor(WORKERS, mp_context=get_context("fork")) as pool:
        untouched = pool.submit(control, whole, chosen)
        noticed = dict(recorded())
        for sabotage, found in zip(chosen, pool.map(partial(attempt, whole), chosen), strict=True):
            print(f"{'MISSED' if found.problem else 'caught'} {found.seconds:4.0f} s  {sabotage.name}", flush=True)
            problems += [f"{sabotage.name}: {found.problem}"] if found.problem else []
            noticed |= {} if found.problem else {sabotage.name: Note(found.test, found.examples, digest(sabotage, found.test))}
        problems += [problem] if (problem := untouched.result()) else []
    if arguments.record:
        kept = {each.name: noticed[each.name] for each in SABOTAGES if each.name in noticed}
        RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print("\n".join([*problems, f"{len(chosen)} of {named} sabotages, {len(problems)} problems"]))
    return 1 if problems or not named else 0


if __name__ == "__main__":
    sys.exit(main())
