"""A query in SQL is the query that methods make: the same plan, or the same answer, and back to text the same again."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl import cql
from streamdsl.plan.node import sources
from streamdsl.testing import assert_cht_equal
from tests.laws.profiles import examples

S = sd.source("S", unit="tick")
T = sd.source("T", unit="tick")
PAIRS: dict[str, sd.Stream[Any]] = {
    "SELECT * FROM S": S,
    "SELECT * FROM S WHERE k = 'a' AND (v > 1 OR NOT v <= w)": S.where(
        lambda e: (e.k == "a") & ((e.v > 1) | sd.not_(e.v <= e.w))
    ),
    "SELECT v * 2 + 1 AS x, -w AS y, 'it''s' AS z FROM S": S.select(x=lambda e: e.v * 2 + 1, y=lambda e: -e.w, z=sd.lit("it's")),
    "SELECT CASE WHEN v > 1 THEN 'hi' ELSE 'lo' END AS c, CAST(v AS TEXT) AS t, abs(w) AS a FROM S": S.select(
        c=sd.when(sd.col("v") > 1).then(sd.lit("hi")).otherwise(sd.lit("lo")),
        t=lambda e: sd.functions.cast(e.v, str),
        a=lambda e: abs(e.w),
    ),
    "SELECT v FROM S WHERE v IS NULL": S.where(lambda e: sd.is_none(e.v)).select(v=lambda e: e.v),
    "SELECT count(*) AS n FROM S GROUP BY TUMBLE(10)": S.tumbling_window(10).aggregate(n=sd.count()),
    "SELECT k, sum(v) AS total, max(w) AS top FROM S GROUP BY k, HOP(10, 5, 1)": S.group_by("k")
    .hopping_window(10, 5, 1)
    .aggregate(total=sd.sum(lambda e: e.v), top=sd.max(lambda e: e.w)),
    "SELECT k, w, count(DISTINCT v) AS n FROM S GROUP BY k, w, SESSION(4) HAVING n > 1": S.group_by(["k", "w"])
    .session_window(4)
    .aggregate(n=sd.count_distinct(lambda e: e.v))
    .where(lambda e: e.n > 1),
    "SELECT avg(v) AS mean FROM S": S.snapshot_window().aggregate(mean=sd.avg(lambda e: e.v)),
    "SELECT DISTINCT * FROM S": S.distinct(),
    "SELECT * FROM S UNION ALL SELECT * FROM T": S.union(T),
    "SELECT ISTREAM * FROM S": S.to_points(),
    "DSTREAM (SELECT * FROM S [RANGE 5])": S.alter_duration(5).to_points_at_end(),
    "SELECT l.v AS a, r.v AS b FROM S AS l JOIN T AS r ON l.k = r.k": S.join(
        T, on=(sd.col("k"), sd.col("k")), select=lambda one, two: {"a": one.v, "b": two.v}
    ),
}
ROWS = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.integers(1, 8),
        st.fixed_dictionaries({"k": st.sampled_from("ab"), "v": st.integers(-2, 3), "w": st.integers(-2, 3)}),
    ),
    max_size=8,
)


def history(rows: list[tuple[int, int, dict[str, Any]]]) -> list[tuple[int, int, dict[str, Any]]]:
    return [(le, le + length, payload) for le, length, payload in rows]


@pytest.mark.parametrize("text", PAIRS)
@examples(25)
@given(ROWS, ROWS)
def test_text_means_what_methods_mean(text: str, s: Any, t: Any) -> None:
    bound = {"S": history(s), "T": history(t)}
    query = PAIRS[text]
    given_to = {name: bound[name] for name in sources(query.plan())}
    for read in (sd.sql(text, S=S, T=T), sd.sql(query.to_sql(), S=S, T=T)):
        assert_cht_equal(read.run(given_to).cht(), query.run(given_to).cht())


@examples(25)
@given(ROWS, ROWS)
def test_a_join_from_the_right_is_one_from_the_left(s: Any, t: Any) -> None:
    bound = {"S": history(s), "T": history(t)}
    right = sd.sql("SELECT S.v AS a, T.w AS b FROM S RIGHT JOIN T ON S.k = T.k", S=S, T=T)
    left = sd.sql("SELECT S.v AS a, T.w AS b FROM T LEFT JOIN S ON S.k = T.k", S=S, T=T)
    assert_cht_equal(right.run(bound).cht(), left.run(bound).cht())


OVER_TIME = [
    "ISTREAM (SELECT k, v FROM S [RANGE 3])",
    "DSTREAM (SELECT k, v FROM S [RANGE 3])",
    "ISTREAM (SELECT * FROM S [RANGE 3])",
    "ISTREAM DIF (SELECT DISTINCT * FROM S [RANGE 3])",
    "ISTREAM (SELECT * FROM (SELECT * FROM S [RANGE 3]) AS q WHERE v > 0)",
    "ISTREAM (SELECT count(*) AS n, sum(v) AS total FROM S [RANGE 4])",
    "ISTREAM (SELECT k, count(*) AS n FROM S [RANGE 6 SLIDE 3] GROUP BY k)",
    "ISTREAM (SELECT k, count(*) AS n FROM S [RANGE 5 SLIDE 3] WHERE v > 0 GROUP BY k HAVING count(*) > 1)",
    "DSTREAM (SELECT v FROM S [RANGE 1 SLIDE 4])",
    "ISTREAM (SELECT max(v) AS top FROM S [RANGE UNBOUNDED])",
    "ISTREAM (SELECT k, v FROM S [NOW])",
    "ISTREAM (SELECT k, v FROM S [NOW SLIDE 3])",
    "ISTREAM (SELECT count(*) AS n FROM S [RANGE UNBOUNDED SLIDE 3])",
    "ISTREAM DIF (SELECT k FROM S [RANGE 3])",
    "DSTREAM DIF (SELECT k, v FROM S [RANGE 3] UNION ALL SELECT k, w AS v FROM S [RANGE 2])",
    "ISTREAM DIF (SELECT v FROM S [RANGE 6 SLIDE 3])",
    "SELECT ISTREAM DIF count(*) AS n FROM S [RANGE 4]",
    "ISTREAM (SELECT k FROM S [RANGE 3] UNION ALL SELECT k FROM S [RANGE 2] WHERE v > 0)",
    "ISTREAM (SELECT A.v AS a, B.w AS b FROM S [RANGE 2] AS A, S [RANGE 5] AS B WHERE A.k = B.k AND A.v < B.w)",
]
"""Queries that need no batches, and mean the same with one batch per timestamp."""


STREAMS = "ISTREAM (SELECT v FROM S [ROWS 1]) UNION ALL ISTREAM (SELECT v FROM S [ROWS 2])"


@examples(40)
@given(ROWS)
def test_difference_semantics_is_the_difference_of_sets_of_values(rows: Any) -> None:
    window, until = "SELECT k, v FROM S [RANGE 3]", 40
    group = cql.stream_group(S=sorted(((payload, le) for le, _, payload in rows), key=lambda row: row[1]), span=(0, until))
    states: list[Any] = [((0, 1), []), *sd.sql(window, group).select(lambda e: (e.k, e.v)).states()]
    new = sorted((at, *values) for (_, one), (at, other) in pairwise(states) for values in set(other) - set(one))
    gone = sorted((at, *values) for (_, one), (at, other) in pairwise(states) for values in set(one) - set(other))
    for word, expected in (("ISTREAM", new), ("DSTREAM", gone)):
        found = sd.sql(f"{word} DIF ({window})", group).events()
        assert sorted((at, row.k, row.v) for at, row in found) == expected
        assert len(sd.sql(f"{word} DEL ({window})", group).events()) == len(sd.sql(f"{word} ({window})", group).events())


@pytest.mark.parametrize("text", OVER_TIME)
@examples(25)
@given(ROWS)
def test_without_batches_it_is_as_with_one_per_timestamp(text: str, rows: Any) -> None:
    until = 40
    points = sd.from_rows([(le, le + 1, payload) for le, _, payload in rows])
    group = cql.stream_group(S=sorted(((payload, le) for le, _, payload in rows), key=lambda row: row[1]), span=(0, until))
    expected = sorted((t, repr(sorted(payload.items()))) for (t, _), payload in sd.sql(text, group).events())
    found = [(le, repr(sorted(payload.items()))) for le, _, payload in sd.sql(text, S=points).run() if le <= until]
    assert sorted(found) == expected


@pytest.mark.parametrize(
    ("text", "problem", "marked"),
    [
        ("SELECT v FROM R", "there is no stream 'R'; there are: S", "R"),
        ("SELECT x FROM S", "there is no column 'x'; there are: k, v", "x"),
        ("SELECT v, v FROM S", "two columns are called 'v'", "v"),
        ("SELECT v + 1 FROM S", "this column has no name", "v + 1"),
        ("SELECT k, v FROM S GROUP BY k", "column 'v' is neither in GROUP BY nor in an aggregate", "v"),
        ("SELECT f(v) AS y FROM S", "there is no function 'f' here", "f(v)"),
        ("SELECT sum(v, 2) AS y FROM S", "sum takes 1 value, not 2", "sum(v, 2)"),
        ("SELECT quantile(v, k) AS q FROM S", "the q of a quantile is a number from 0 to 1", "k"),
        ("SELECT v FROM S [RANGE 2 WEEKS]", "there is no unit 'WEEKS'", "WEEKS"),
        ("SELECT v FROM S [RANGE 0]", "a window is as long as a tick at least", "RANGE 0"),
        ("SELECT v FROM S, S", "two sources are called 'S'", "S"),
        ("SELECT v FROM S A, S B", "column 'v' may be of several sources", "v"),
        ("SELECT v FROM S HAVING v > 1", "HAVING is for groups", "HAVING v > 1"),
        ("SELECT v FROM S ORDER BY v", "'ORDER' does not belong here", "ORDER"),
        ("SELECT v FROM S WHERE sum(v) > 3", "the aggregate 'sum' has no rows here", "sum(v)"),
        ("SELECT sum(count(*)) AS n FROM S", "the aggregate 'count' has no rows here", "count(*)"),
        ("SELECT sum(v) AS n FROM S GROUP BY TUMBLE(0)", "positive durations", "TUMBLE(0)"),
        ("SELECT sum(v) AS n FROM S GROUP BY TUMBLE(1 HOUR)", "the stream counts plain ticks", "TUMBLE(1 HOUR)"),
        ("SELECT v FROM S [RANGE 5 SLIDE 0]", "a size and a period > 0", "[RANGE 5 SLIDE 0]"),
        ("SELECT quantile(v, 2) AS q FROM S", "a quantile is between 0 and 1", "quantile(v, 2)"),
        ("SELECT v FROM S KEEP 0 ROWS", "keep takes a whole number >= 1", "KEEP 0 ROWS"),
        ("SELECT v FROM S [ROWS 1] OUTPUT EVERY 0", "output_every takes a whole number", "OUTPUT EVERY 0"),
        ("SPREAD S ON rank INTO R; SELECT v FROM R [ROWS 1]", "there is no field 'rank'", "rank"),
        ("SELECT sum(v) AS v, v AS raw FROM S", "column 'v' is neither in GROUP BY nor in an aggregate", "v"),
        ('SELECT v FROM S WHERE k = "A"', "there is no column 'A'", '"A"'),
        ("SELECT abs(v, 2) AS a FROM S", "abs cannot be called like this", "abs(v, 2)"),
        ("SELECT length() AS a FROM S", "length cannot be called like this", "length()"),
        ("SELECT count(v, k) AS a FROM S", "count takes 1 value, not 2", "count(v, k)"),
        ("SELECT abs(DISTINCT v) AS a FROM S", "only count has DISTINCT", "abs"),
        ("SELECT abs(*) AS a FROM S", "abs takes values, not rows", "*"),
        ("SELECT v FROM S [RANGE 1.5 MICROSECONDS]", "a whole number of microseconds", "1.5 MICROSECONDS"),
        ("SELECT v FROM S [RANGE 999999999999 DAYS]", "outside the range of times", "999999999999 DAYS"),
        ("SELECT v FROM S [RANGE 99999999999999999999]", "outside the range of times", "[RANGE 99999999999999999999]"),
        ("SELECT v FROM S [PARTITION BY k RANGE 3]", "PARTITION BY is for ROWS without SLIDE", "k"),
        ("RSTREAM DIF (SELECT v FROM S [ROWS 1])", "RSTREAM gives all rows of each batch", "DIF"),
        (STREAMS, "over batches UNION ALL takes relations", STREAMS),
        ("SELECT v + FROM S", "'FROM' does not belong here", "F"),
        ("SELECT v FROM", "the query ends here", ""),
    ],
)
def test_errors_point_into_the_text(text: str, problem: str, marked: str) -> None:
    rows = sd.from_rows([(1, 2, {"k": "a", "v": 1})])
    with pytest.raises(sd.errors.SqlError) as raised:
        sd.sql(text, S=rows)
    first, line, marks, *_ = str(raised.value).splitlines()
    assert problem in first
    assert line.endswith(text)
    start = marks.index("^")
    assert line[start : start + marks.count("^")] == marked


def answer(text: str, **streams: Any) -> list[Any]:
    return [row.payload for row in sd.sql(text, **streams).run()]


CASES = sd.from_rows(
    [(1, 2, {"k": "A", "v": 1}), (1, 2, {"k": "a", "v": 2}), (1, 2, {"k": "a  b", "v": 4}), (1, 2, {"k": "a b", "v": 8})]
)


def test_aggregates_that_differ_in_a_letter_or_a_space_are_two() -> None:
    of = "sum(CASE WHEN k = '{}' THEN v ELSE 0 END)"
    columns = ", ".join(f"{of.format(name)} AS c{n}" for n, name in enumerate(["A", "a", "a  b", "a b"]))
    assert answer(f"SELECT {columns} FROM S", S=CASES) == [sd.Record(c0=1, c1=2, c2=4, c3=8)]
    fields = sd.from_rows([(1, 2, {"v": 1, "V": 5})])
    assert answer("SELECT sum(v) AS a, SUM(V) AS b, Sum( v ) AS c FROM S", S=fields) == [sd.Record(a=1, b=5, c=1)]


def test_groups_without_aggregates_have_the_columns_that_are_selected() -> None:
    assert sorted(map(repr, answer("SELECT k FROM S GROUP BY k", S=CASES))) == sorted(
        repr(sd.Record(k=k)) for k in ("A", "a", "a  b", "a b")
    )
    pairs = sd.from_rows([(1, 3, ("p", 5)), (1, 3, ("q", 5))])
    assert answer("SELECT _1 FROM P GROUP BY _1", P=pairs) == [sd.Record(_1=5)]


def test_columns_of_several_sources_keep_apart_whatever_they_are_called() -> None:
    one, other = sd.from_rows([(1, 3, {"k": "A"})]), sd.from_rows([(1, 3, {"k": "B", "S_k": "z"})])
    text = "SELECT S.k AS a, T.k AS b, T.S_k AS c FROM S, T"
    assert answer(text, S=one, T=other) == [sd.Record(a="A", b="B", c="z")]


def test_a_function_of_the_users_gives_its_name_to_a_column_as_it_is() -> None:
    assert answer("SELECT Net(v), ABS(v) FROM S WHERE k = 'A'", S=CASES, Net=sd.udf(lambda v: v * 2)) == [sd.Record(Net=2, abs=1)]
    with pytest.raises(sd.errors.SqlError, match="Net cannot be called like this"):
        sd.sql("SELECT Net(v, k) FROM S", S=CASES, Net=lambda v: v)


@pytest.mark.parametrize("name", ["span", "seed", "batching"])
def test_a_stream_may_have_any_name_over_batches_too(name: str) -> None:
    given_: Any = {name: CASES}
    assert len(sd.sql(f"ISTREAM (SELECT v FROM {name} [ROWS 9])", **given_).events()) == 4
    assert len(sd.sql(f"SPREAD {name} ON v INTO R; ISTREAM (SELECT v FROM R [ROWS 1])", **given_).events()) == 4


def test_what_has_no_words_in_sql_is_said() -> None:
    with pytest.raises(sd.errors.QueryError, match="there is no SQL for shift"):
        S.shift(3).to_sql()


def test_batches_are_of_rows_that_are_there() -> None:
    with pytest.raises(sd.errors.QueryError, match="S has no rows of its own"):
        sd.sql("SELECT sum(v) AS total FROM S [ROWS 3]", S=S)


def test_functions_and_modules_are_called_by_their_names() -> None:
    @sd.udf
    def doubled(x: int) -> int:
        return 2 * x

    class Range(sd.UDA[int, int]):
        def compute_result(self, payloads: Any) -> int:
            return int(max(payloads) - min(payloads))

    rows = sd.from_rows([(1, 2, {"v": 1}), (1, 2, {"v": 4})])
    found = sd.sql("SELECT Range(doubled(v)) AS r FROM S GROUP BY TUMBLE(10)", S=rows, doubled=doubled, Range=Range)
    assert list(found.run()) == [(0, 10, sd.Record(r=6))]


def test_alerts_of_a_network_are_one_text() -> None:
    """Section 7 of paper 002: connections are spread, counted per source, and brought together again by minute."""
    tries = [("x", 1), ("x", 1), ("y", 2), ("x", 5), ("y", 61), ("x", 62), ("x", 63), ("x", 130)]
    rows = [({"srcIp": ip, "status": "FAILURE", "arrival_number": n}, t) for n, (ip, t) in enumerate(tries)]
    found = sd.sql(NETWORK, cql.stream_group(CStream=rows))
    assert found.events() == [((60, 1), sd.Record(srcIp="x")), ((120, 1), sd.Record(srcIp="x"))]


NETWORK = """
SPREAD CStream ON arrival_number INTO Ordered;
Alerts = ISTREAM (SELECT srcIp FROM Ordered [PARTITION BY srcIp ROWS 3]
                  WHERE status = 'FAILURE' GROUP BY srcIp HAVING count(*) > 2);
SPREAD ALL Alerts ON time INTO Simultaneous;
Minute = SELECT srcIp, count(*) AS n FROM Simultaneous [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY srcIp;
TwoMinutes = SELECT srcIp, count(*) AS n FROM Simultaneous [RANGE 2 MINUTES SLIDE 1 MINUTE] GROUP BY srcIp;
ISTREAM (SELECT M.srcIp FROM Minute AS M, TwoMinutes AS T WHERE M.srcIp = T.srcIp AND 2 * M.n > T.n)
"""


def test_what_is_no_query_and_what_has_no_name_are_refused() -> None:
    rows: Any = sd.from_rows([(1, 2, {"k": "a"})])
    text: Any = None
    with pytest.raises(sd.errors.QueryError, match="None is not the text of a query"):
        sd.sql(text, S=rows)
    with pytest.raises(sd.errors.QueryError, match="is read over batches, as S"):
        sd.sql("SELECT value FROM S", S=[("a", 1)])
    with pytest.raises(sd.errors.QueryError, match="has no name in the query"):
        sd.sql("SELECT k FROM S", rows)


def test_a_length_with_a_unit_is_as_long_over_batches_of_a_calendar() -> None:
    minutes = [datetime(2026, 1, 1, 12, n) for n in range(11)]
    calls = sd.from_rows([(minutes[n], minutes[n + 1], {"v": n}) for n in (0, 2, 9)], unit="us")
    text = "ISTREAM (SELECT count(*) AS n FROM S [RANGE 5 MINUTES])"
    spread = sd.sql("SPREAD calls ON v INTO S; " + text, calls=calls)
    assert [row.n for _, row in spread.events()] == [row.payload.n for row in sd.sql(text, S=calls).run()] == [1, 2, 1, 1]
    group = cql.stream_group(S=calls)
    assert [row.n for _, row in sd.sql(text, group).events()] == [1, 2, 1, 1]
