"""The edges of time and of numbers on Spark: windows at the ends of int64, sums beyond doubles, keys that are no Unicode."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import TimeOverflow, UnsupportedOnSpark, UserCodeError
from streamdsl.plan.node import Source
from streamdsl.spark import SourceFrame, translated
from streamdsl.spark.exact_sums import is_float
from streamdsl.spark.source_frames import source_of_frame
from tests.spark.helpers import check, check_noted, stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LATEST = sd.INFINITY - 1
INF = float("inf")


def values(rows: list[tuple[int, int]]) -> sd.CHT[Any]:
    return sd.CHT.from_rows([(le, re, {"v": v}) for v, (le, re) in enumerate(rows)])


def largest(payloads: Any) -> Any:
    return max(payloads)


EARLY = [(sd.MIN_TIME, sd.MIN_TIME + 3), (sd.MIN_TIME + 9, sd.MIN_TIME + 20)]
AROUND_ZERO = [(-7, -1), (0, 5), (3, 4)]
LATE = [(LATEST - 17, LATEST - 9)]
GRIDS: list[tuple[tuple[int, int, int], list[tuple[int, int]]]] = [
    ((8, 8, 0), EARLY),
    ((8, 16, 0), EARLY),
    ((10, 10, 8), EARLY[1:]),
    ((10, 10, -(10**18)), [*AROUND_ZERO, *LATE]),
    ((10, 10, 2**62), [*AROUND_ZERO, *LATE]),
    ((2**62, 2**62, 2**62 + 5), AROUND_ZERO),
    ((2**63 - 1, 2**62, 0), AROUND_ZERO[1:2]),
    ((3, 1, 0), [*AROUND_ZERO, *LATE]),
]


@pytest.mark.parametrize(("grid", "rows"), GRIDS, ids=lambda value: repr(value) if isinstance(value, tuple) else "")
def test_windows_reach_the_ends_of_time(grid: tuple[int, int, int], rows: list[tuple[int, int]]) -> None:
    windows = stream().hopping_window(*grid)
    check(windows.aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)), {"s": values(rows)}, native=True)


def test_numbers_of_portions_reach_the_ends_of_time() -> None:
    query: sd.Stream[Any] = stream().hopping_window(10, 10, 10**18 + 3).aggregate(sd.uda(largest).of(lambda e: e.v))
    check(query, {"s": values([*EARLY[1:], *AROUND_ZERO, *LATE])}, native=False)


def test_no_window_ends_before_the_first() -> None:
    query = stream().tumbling_window(1).aggregate(n=sd.count())
    check(query, {"s": values(EARLY)}, until=sd.MIN_TIME)
    check(query, {"s": values(EARLY)}, until=sd.MIN_TIME + 2)


OVERFLOWING: dict[str, sd.Stream[Any]] = {
    "a window before time": stream().tumbling_window(10).aggregate(n=sd.count()),
    "a window after time": stream().tumbling_window(10, 3).aggregate(n=sd.count()),
    "the end of a count window": stream().count_window(2).aggregate(n=sd.count()),
    "a point after the end": stream().count_window(1, output=sd.Output.POINT_AT_END).aggregate(n=sd.count()),
}


@pytest.mark.parametrize("name", OVERFLOWING)
def test_what_leaves_time_fails_as_in_the_definition(name: str) -> None:
    data = {"s": [sd.Insert(i, *row) for i, row in enumerate(values([*EARLY, *AROUND_ZERO, (LATEST, sd.INFINITY)]))]}
    until = None if "count" in name or "point" in name else 10
    late = "after time" in name
    data = {"s": [sd.Insert(0, LATEST - 1, LATEST, {"v": 1})]} if late else data
    for engine in ("reference", "spark"):
        with pytest.raises(TimeOverflow):
            OVERFLOWING[name].run(data, engine=engine, until=None if late else until)


EXACT: dict[str, list[float]] = {
    "tenths": [0.1] * 10,
    "far apart": [1e27, 1.5, -1e27, 1e-20],
    "beyond the limbs": [1e300, 3e299, -1e299],
    "an infinity among large ones": [INF, 1e300, -1e200],
    "both infinities": [INF, -INF, 1.0],
    "not a number": [float("nan"), 1e300],
    "denormal": [5e-324, 5e-324],
}
LOST: dict[str, list[float]] = {
    "large numbers cancel": [1e300, 1e100, -1e300],
    "small change of large numbers": [1e29, 1e12, -1e29, 1.5e29, -1.5e29],
    "an overflow on the way": [1e308, 1e308, -1e308],
}


def cases(named: dict[str, list[float]]) -> sd.CHT[Any]:
    return sd.CHT.from_rows([(0, 10, {"case": case, "f": f}) for case, floats in named.items() for f in floats])


def test_float_sums_are_exact_where_they_are_given() -> None:
    groups = stream().group_by("case")
    sums: dict[str, Any] = {"total": sd.sum(lambda e: e.f), "mean": sd.avg(lambda e: e.f)}
    check(groups.tumbling_window(10).aggregate(**sums, weighed=sd.time_weighted_avg(lambda e: e.f)), {"s": cases(EXACT)})
    check(groups.snapshot_window().aggregate(**sums), {"s": cases(EXACT)}, native=True)


def test_what_is_unusual_leaves_a_snapshot_as_it_came() -> None:
    rows = [
        (0, 40, 0.1),
        (2, 6, float("nan")),
        (4, 9, INF),
        (5, 8, -INF),
        (10, 14, 2.0**60 + 2.0**20),
        (11, 16, 1e-9),
        (12, 13, 1e27),
    ]
    rows += [(20, 24, 1e-20), (21, 25, -1e-20), (30, 33, INF), (32, 36, INF)]
    windows = stream().snapshot_window()
    query = windows.aggregate(total=sd.sum(lambda e: e.f), mean=sd.avg(lambda e: e.f), n=sd.count())
    check(query, {"s": sd.CHT.from_rows([(le, re, {"f": f}) for le, re, f in rows])}, native=True)


def test_a_snapshot_in_which_only_rounded_floats_are_left_is_refused() -> None:
    rows = [(0, 5, 1e-30), (2, 9, 1e-60)]
    query = stream().snapshot_window().aggregate(total=sd.sum(lambda e: e.f))
    with pytest.raises(UnsupportedOnSpark, match="nearly cancel"):
        query.run({"s": [sd.Insert(i, le, re, {"f": f}) for i, (le, re, f) in enumerate(rows)]}, engine="spark")


RANKED: dict[str, list[Any]] = {
    "floats": [0.0, -0.0, 1.0, INF, -INF, float("nan"), float("nan"), None, 5e-324, -5e-324],
    "texts": ["", "a", "Z", "\u00e9", "\uffff", "\U0001f600", None, "a\0"],
    "truths": [True, False, None, True],
    "integers": [2**63 - 1, -(2**63), 2**53, 2**53 + 1, None],
}


@pytest.mark.parametrize("name", RANKED)
def test_odd_values_rank_as_in_python(name: str) -> None:
    rows = sd.CHT.from_rows([(n % 3, 5 + n, {"n": n, "x": x}) for n, x in enumerate(RANKED[name])])
    for k in (1, 3, len(rows)):
        largest: Any = stream().tumbling_window(5).top_k(k, by="x", rank=True)
        check(largest.select(lambda e: (e._0, e._1.n)), {"s": rows}, native=True)


WHOLE_QUANTILES: list[list[int | None]] = [
    [1, 2, 4],
    [1, 2, 4, 8],
    [3, 3],
    [7],
    [None, None],
    [None, 5, 6],
    [2**53 + 1, 2**53 + 1, 2**53 + 3],
    [2**53 + 1, 2**53 + 3, 2**62 + 1, -5],
    [2**63 - 1, -(2**63)],
    [2**63 - 1, 2**63 - 2, 0, -1],
    [-(2**63), -(2**63) + 1, 10**18 + 7, 12, None, -3],
]


def test_quantiles_of_integers_are_integers_or_floats_as_in_python() -> None:
    rows = [(n % 3, 5, {"case": case, "v": v}) for case, values in enumerate(WHOLE_QUANTILES) for n, v in enumerate(values)]
    shares: dict[str, Any] = {f"q{n}": q for n, q in enumerate((0.5, 0.3, 0.9, 0, 1, Fraction(1, 3), 0.75))}
    quantiles: dict[str, Any] = {name: sd.quantile(lambda e: e.v, q) for name, q in shares.items()}
    for windows in (stream().group_by("case").tumbling_window(5), stream().group_by("case").snapshot_window()):
        query = windows.aggregate(**quantiles, m=sd.median(lambda e: e.v))
        expected = check(query, {"s": sd.CHT.from_rows(rows)}, native=True)
        found = query.run({"s": [sd.Insert(i, *row) for i, row in enumerate(rows)]}, engine="spark").cht()
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_integers_and_floats_in_one_column_are_told_apart() -> None:
    rows = {"s": sd.CHT.from_rows([(n, n + 3, {"v": n * n}) for n in range(9)])}
    medians = stream().snapshot_window().aggregate(m=sd.median(lambda e: e.v), v=sd.max(lambda e: e.v))
    check(medians.where(lambda e: (e.m > 4) & (e.m < 30)).select(m=lambda e: e.m * 2, v=lambda e: sd.is_none(e.m)), rows)
    check(medians.to_edges(lambda e: e.m), rows)
    check(medians.join(medians.select(m=lambda e: e.v), on="m"), rows)
    check(medians.union(medians.select(m=lambda e: None, v=lambda e: e.v)), rows, native=True)
    check(medians.tumbling_window(4).aggregate(n=sd.count_distinct(lambda e: e.m), top=sd.max(lambda e: e.m)), rows)


COMPARED = "d decimal(12,3), day date, at timestamp, clock timestamp_ntz"


def test_what_spark_compares_as_python_does_is_compared_natively(spark: Any) -> None:
    moments = [datetime(2020, 1, day, hour, tzinfo=UTC) for day, hour in ((9, 3), (10, 2), (31, 23), (1, 0), (9, 3))]
    known = [(Decimal(f"{n - 2}.{n}50"), each.date(), each, each.replace(tzinfo=None)) for n, each in enumerate(moments)]
    values = [*known, (None, None, None, None)]
    rows = [(n % 3, 5 + n % 2, n % 2, *value) for n, value in enumerate(values)]
    frame = spark.createDataFrame(rows, f"le long, re long, k long, {COMPARED}")
    columns = ("d", "day", "at", "clock")
    made: dict[str, Any] = {
        f"{name}_{column}": how(sd.col(column))
        for column in columns
        for name, how in (("low", sd.min), ("high", sd.max), ("some", lambda e: sd.quantile(e, 0.4, "inverted_cdf")))
    }
    history = {"s": sd.CHT.from_rows([(le, re, dict(zip(("k", *columns), row, strict=True))) for le, re, *row in rows])}
    windows = stream().group_by("k").tumbling_window(6)
    ordered = stream().select(d=lambda e: e.d, k=lambda e: e.k).tumbling_window(6)
    listed: dict[str, Any] = {"first": sd.first(lambda e: e.d), "last": sd.last(lambda e: e.d), "all": sd.collect(lambda e: e.d)}
    medians = stream().where(lambda e: e.k == 0).tumbling_window(6).aggregate(m=sd.median(lambda e: e.d))
    for query in (windows.aggregate(**made), ordered.aggregate(**listed), medians):
        flows = {"s": source_of_frame(Source("s", None, "tick"), SourceFrame(frame))}
        assert check_noted(query, history, denote(query.plan(), history), flows=flows)


def test_rows_that_start_together_are_in_the_order_of_their_payloads(spark: Any) -> None:
    first = datetime(2020, 1, 9, 3, tzinfo=UTC)
    later = [
        timedelta(microseconds=n) for n in (0, 1, 10**6, 10**6 + 7, 6 * 10**7, 11 * 36 * 10**8, 30 * 86400 * 10**6, -(10**15))
    ]
    moments = [None, *(first + each for each in later)]
    rows = [
        (1, 9, k, n, at and at.date(), *((at, None) if k else (None, at and at.replace(tzinfo=None))))
        for k in range(2)
        for n, at in enumerate(moments)
    ]
    frame = spark.createDataFrame(rows, "le long, re long, k long, n long, day date, at timestamp, clock timestamp_ntz")
    names = ("k", "n", "day", "at", "clock")
    history = {"s": sd.CHT.from_rows([(le, re, dict(zip(names, row, strict=True))) for le, re, *row in rows])}
    for order in ("day", "at", "clock"):
        payloads: Any = stream().select(k=lambda e: e.k, t=sd.col(order), n=lambda e: e.n)
        windows = payloads.group_by("k").tumbling_window(9)
        query = windows.aggregate(first=sd.first(lambda e: e.n), last=sd.last(lambda e: e.t), all=sd.collect(lambda e: e.t))
        flows = {"s": source_of_frame(Source("s", None, "tick"), SourceFrame(frame))}
        assert check_noted(query, history, denote(query.plan(), history), flows=flows)


def test_nothing_lies_between_two_decimals(spark: Any) -> None:
    frame = spark.createDataFrame([(1, Decimal(1)), (1, Decimal(2))], "le long, d decimal(5,1)")
    found = stream().tumbling_window(6).aggregate(m=sd.median(lambda e: e.d)).on_spark(spark).batch(frame)
    with pytest.raises(UserCodeError, match=r"TypeError.*'decimal.Decimal' and 'float'"), translated():
        found.collect()


@pytest.mark.parametrize("direction", ["back", "forward", "nearest"])
def test_the_nearest_rows_of_all_time_are_found(direction: Any) -> None:
    first, last = -(2**63), 2**63 - 2
    rights = enumerate([(first,), (last,), (first, last), (first + 1, 0, last), (0, 0), (1,), ()])
    known = [(at, at + 1, {"case": case, "n": n}) for case, times in rights for n, at in enumerate(times)]
    lefts = [(at, sd.INFINITY, {"case": case}) for at in (first, -1, 0, 1, last) for case in range(7)]
    for tolerance in (None, 2**62):
        query = stream().asof_join(stream("t"), on="case", direction=direction, tolerance=tolerance, how="left")
        check(query, {"s": sd.CHT.from_rows(lefts), "t": sd.CHT.from_rows(known)}, native=True)


VARYING: dict[str, list[Any]] = {
    "equal": [0.1] * 3,
    "prices": [12.35, 99.99, 0.01, 4.2, 1234.5],
    "far from zero": [1e15 + 0.125, 1e15 + 0.25, 1e15, 1e15 + 0.625],
    "as close as floats are": [1.7e18 / 3, 1.7e18 / 3 + 128.0, 1.7e18 / 3 - 64.0],
    "small": [1e-10, 3e-10, 2.5e-10],
    "both signs": [-3.5, 3.5],
    "large": [2.0**40 + 0.5, 2.0**60, -(2.0**70)],
    "as large as three digits": [2.0**31 - 2.0**-21, 2.0**-21 - 2.0**31, 2.0**31, 0.5, -0.5, 1.5],
    "as small": [2.0**-64, 3 * 2.0**-33, -0.5, -(2.0**-65)],
    "not a number": [1.0, float("nan")],
    "infinite": [1.0, INF],
    "one": [4.5],
    "none": [None, None],
    "some": [None, 2.5, 3.5],
}
WHOLE: dict[str, list[Any]] = {
    "equal": [7] * 4,
    "small": [1, 2, 4, 8],
    "nanoseconds": [1_700_000_000_000_000_000 + n for n in (0, 1, 5)],
    "largest": [2**63 - 1, -(2**63), 0],
    "beyond int64 when squared": [2**31, -(2**31) - 1, 2**33 + 1],
    "some": [None, 3, 5],
}


@pytest.mark.parametrize("named", [VARYING, WHOLE], ids=["floats", "integers"])
def test_variances_are_those_of_exact_sums(named: dict[str, list[Any]]) -> None:
    rows = [(place % 3, 10, {"case": case, "f": f}) for case, values in named.items() for place, f in enumerate(values)]
    groups = stream().group_by("case")
    both: dict[str, Any] = {"variance": sd.variance(lambda e: e.f), "deviation": sd.stddev(lambda e: e.f)}
    of_members = groups.session_window(1).aggregate(v=both["variance"]), groups.count_window(2).aggregate(d=both["deviation"])
    for query in (groups.tumbling_window(10).aggregate(**both), groups.snapshot_window().aggregate(**both), *of_members):
        check(query, {"s": sd.CHT.from_rows(rows)}, native=True)


def test_variances_of_floats_whose_squares_are_too_large_are_refused() -> None:
    query = stream().tumbling_window(10).aggregate(v=sd.variance(lambda e: e.f))
    with pytest.raises(UnsupportedOnSpark, match="nearly cancel"):
        query.run({"s": [sd.Insert(i, 1, 4, {"f": f}) for i, f in enumerate([1e30, 2e30])]}, engine="spark")


@pytest.mark.parametrize("name", LOST)
def test_float_sums_that_nearly_cancel_are_refused(name: str) -> None:
    query = stream().tumbling_window(10).aggregate(total=sd.sum(lambda e: e.f))
    with pytest.raises(UnsupportedOnSpark, match="nearly cancel"):
        query.run({"s": [sd.Insert(i, *row) for i, row in enumerate(cases({name: LOST[name]}))]}, engine="spark")


def test_integers_are_weighed_beyond_int64() -> None:
    day = 86_400_000_000
    rows = sd.CHT.from_rows([(0, day, {"cents": 10**9 + 1}), (5, day - 5, {"cents": -(2**62)})])
    check(stream().tumbling_window(day).aggregate(mean=sd.time_weighted_avg(lambda e: e.cents)), {"s": rows}, native=True)


def test_keys_need_not_be_unicode() -> None:
    rows = sd.CHT.from_rows([(t, t + 4, {"k": k, "v": t}) for t, k in enumerate(["\ud800", "a", "\ud800", None, "\udfff"])])
    check(stream().group_by("k").snapshot_window().aggregate(n=sd.count()), {"s": rows})
    check(stream().join(stream().shift(1), on="k"), {"s": rows})


def test_the_values_of_a_choice_may_be_records_with_and_without_none() -> None:
    query = stream().select(lambda e: sd.when(e.v > 1).then((e.v, None)).otherwise((0, "few")))
    check(query, {"s": values([(0, 5), (1, 5), (2, 5)])}, native=True)


def test_a_count_without_an_expression_counts_rows_that_are_none_too() -> None:
    mixed = sd.CHT.from_rows([(1, 2, None), (1, 2, 3), (3, 4, None)])
    windows = stream().tumbling_window(10)
    check(windows.aggregate(n=sd.count(), nones=sd.count(where=lambda e: sd.is_none(e))), {"s": mixed}, native=True)


def test_points_of_a_frame_without_ends_are_in_windows_as_rows_with_ends_are(spark: Any) -> None:
    rows = [(-21, 2**62), (-1, 2**62), (0, 3), (7, -(2**62)), (7, None), (19, 5)]
    points = spark.createDataFrame(rows, "le long, v long")
    data = {"s": [sd.Insert(i, le, le + 1, {"v": v}) for i, (le, v) in enumerate(rows)]}
    for window, until in (((10, 10, 3), None), ((12, 4, 1), 20), ((7, 3, 0), None)):
        query = stream().hopping_window(*window).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v))
        expected = [(row.le, row.re, *row.payload.values()) for row in query.run(data, until=until).cht()]
        assert sorted(map(tuple, query.on_spark(spark).batch({"s": points}, until).collect())) == sorted(expected)


def test_sums_of_integers_are_exact_until_they_leave_int64() -> None:
    query = stream().tumbling_window(10).aggregate(total=sd.sum(lambda e: e.v), mean=sd.avg(lambda e: e.v))
    largest, least = 2**63 - 1, -(2**63)
    summed = ([largest, -5, 5], [least, 7, -7], [largest, least], [2**32, -(2**32), -1], [-1, -1, 2**31])
    rows = [(place, 4, {"n": n, "v": v}) for n, one in enumerate(summed) for place, v in enumerate(one)]
    by_n = stream().group_by("n").tumbling_window(10).aggregate(total=sd.sum(lambda e: e.v), mean=sd.avg(lambda e: e.v))
    assert len(check(by_n, {"s": sd.CHT.from_rows(rows)}, native=True)) == len(summed)
    means = stream().snapshot_window().aggregate(mean=sd.avg(lambda e: e.v))
    check(means, {"s": sd.CHT.from_rows([(1, 6, {"v": largest}), (2, 7, {"v": largest}), (3, 4, {"v": least})])}, native=True)
    with pytest.raises(OverflowError):
        query.run({"s": [sd.Insert(i, 1, 4, {"v": largest}) for i in range(2)]}, engine="spark")


def test_the_smallest_integer_is_a_sum_of_digits_too(spark: Any) -> None:
    sums = "-9223372036854775807L - 1L, -9007194959773697L, -9007194959773696L, -9007194959773695L, 0L, 9007194959773695L"
    found = spark.sql(f"select {is_float('x')} as fits from (select explode(array({sums})) as x)").collect()
    assert [row.fits for row in found] == [False, False, False, True, True, True]


def test_integer_keys_that_are_none_meet_each_other_only() -> None:
    rows = [(0, 9, {"k": k, "v": v}) for v, k in enumerate([None, None, 0, 1, -4611686018427387905])]
    check(stream().join(stream().shift(1), on="k"), {"s": sd.CHT.from_rows(rows)}, native=True)
