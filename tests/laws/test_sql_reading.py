"""What a text in SQL could be taken for, and is not: joins, unions, names, and conditions that other systems read otherwise."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl import cql

S = sd.from_rows([(0, 1, {"k": "a", "v": 1, "flag": 2}), (0, 1, {"k": "b", "v": 3, "flag": 0})])
T = sd.from_rows([(0, 1, {"k": "a", "x": 10}), (0, 1, {"k": "c", "x": 30})])


def answer(text: str, **given: Any) -> list[Any]:
    return sorted((tuple(row.payload.values()) for row in sd.sql(text, **({"S": S, "T": T} | given)).run()), key=repr)


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("S JOIN T ON S.k = T.k", [(1, 10)]),
        ("S INNER JOIN T ON S.k = T.k", [(1, 10)]),
        ("S CROSS JOIN T WHERE S.k = T.k", [(1, 10)]),
        ("S LEFT OUTER JOIN T ON S.k = T.k", [(1, 10), (3, None)]),
        ("S RIGHT JOIN T ON S.k = T.k", [(1, 10), (None, 30)]),
        ("S RIGHT OUTER JOIN T ON T.k = S.k", [(1, 10), (None, 30)]),
        ("S FULL OUTER JOIN T ON S.k = T.k", [(1, 10), (3, None), (None, 30)]),
    ],
)
def test_joins_are_what_their_words_say(join: str, expected: list[Any]) -> None:
    assert answer(f"SELECT v, x FROM {join}") == expected


@pytest.mark.parametrize("word", ["NATURAL", "SEMI", "ANTI", "ASOF"])
def test_a_join_that_there_is_not_is_no_alias(word: str) -> None:
    with pytest.raises(sd.errors.SqlError, match=f"'{word}' does not belong here"):
        sd.sql(f"SELECT v, x FROM S {word} JOIN T", S=S, T=T)


def test_names_of_joins_name_columns_and_sources_too() -> None:
    rows = sd.from_rows([(0, 1, {"left": 1, "inner": 2, "right": 3})])
    assert answer("SELECT left, inner, right FROM R", R=rows) == [(1, 2, 3)]
    assert answer("SELECT cross.left FROM R AS cross", R=rows) == [(1,)]


@pytest.mark.parametrize("outer", ["FULL", "RIGHT"])
def test_conditions_of_where_are_asked_after_a_join_that_adds_rows(outer: str) -> None:
    one = sd.from_rows([(0, 1, {"k": 1}), (0, 1, {"k": 2})])
    two = sd.from_rows([(0, 1, {"j": 9}), (0, 1, {"j": 1})])
    three = sd.from_rows([(0, 1, {"i": 9})])
    found = answer(f"SELECT k, j, i FROM A, B {outer} JOIN C ON B.j = C.i WHERE k = j", A=one, B=two, C=three)
    assert found == ([(1, 1, None)] if outer == "FULL" else [])


@pytest.mark.parametrize("other", ["k, x", "v, k", "k"])
def test_a_union_of_other_columns_is_refused(other: str) -> None:
    streams = {"S": S, "T": T} if other == "k, x" else {"S": S, "T": S}
    with pytest.raises(sd.errors.SqlError, match=f"UNION ALL unites rows of k, v with rows of {other}"):
        sd.sql(f"SELECT k, v FROM S UNION ALL SELECT {other} FROM T", **streams)


def test_everything_of_a_source_that_is_not_there_is_refused() -> None:
    with pytest.raises(sd.errors.SqlError, match="there is no source 'Q'"):
        sd.sql("SELECT Q.* FROM S", S=S)
    assert len(answer("SELECT A.* FROM S AS A")) == 2


class Median(sd.UDA[int, int]):
    def compute_result(self, payloads: Any) -> int:
        return -len(list(payloads))


def test_what_is_given_comes_before_what_there_is() -> None:
    assert answer("SELECT median(v) AS m FROM S", median=Median) == [(-2,)]
    assert answer("SELECT Median(v) AS m FROM S", Median=Median) == [(-2,)]
    assert answer("SELECT median(v) AS m FROM S", Median=Median) == [(2.0,)]
    assert answer("SELECT first(v) AS m FROM S", first=sd.udf(lambda v: v * 100)) == [(100,), (300,)]
    assert answer("SELECT first(sum(v)) AS m FROM S", first=sd.udf(lambda v: v * 100)) == [(400,)]


def test_a_function_may_give_a_constant() -> None:
    assert answer("SELECT three(v) AS m FROM S WHERE three(v) = 3", three=lambda v: 3) == [(3,), (3,)]


def test_a_function_that_needs_values_says_so() -> None:
    with pytest.raises(sd.errors.SqlError, match=r"(?s)has no truth value.*line 1.*\^.*Hint: write") as raised:
        sd.sql("SELECT size(v) AS m FROM S", S=S, size=lambda v: "big" if v > 1 else "small")
    assert str(raised.value).count("Hint:") == 1


def test_having_knows_the_columns_that_are_selected() -> None:
    assert answer("SELECT sum(v) AS a, sum(v) AS b FROM S GROUP BY k HAVING b > 1") == [(3, 3)]
    assert answer("SELECT sum(v) * 2 AS d FROM S GROUP BY k HAVING d > 2") == [(6,)]
    assert answer("SELECT k AS x, count(*) AS n FROM S GROUP BY k HAVING x = 'a'") == [("a", 1)]
    with pytest.raises(sd.errors.SqlError, match="there is no column '_1'"):
        sd.sql("SELECT sum(v) + 1 AS d FROM S HAVING _1 > 2", S=S)


def test_an_aggregate_in_having_is_of_the_sources_columns() -> None:
    text = "SELECT S.k AS letter, max(T.x) AS v FROM S JOIN T ON S.k = T.k GROUP BY S.k HAVING min(v) = 1 AND abs(v) = 10"
    assert answer(text) == [("a", 10)]


def test_conditions_are_true_or_false_whatever_they_are_of() -> None:
    assert answer("SELECT v FROM S WHERE flag AND v > 0") == [(1,)]
    assert answer("SELECT v FROM S WHERE flag AND v") == [(1,)]
    assert answer("SELECT v FROM S WHERE v > 2 OR flag") == [(1,), (3,)]
    assert answer("SELECT flag AND v > 0 AS both, flag OR v < 0 AS either FROM S") == [(False, False), (True, True)]
    assert answer("SELECT v IS NOT NULL AND flag AS both FROM S") == [(False,), (True,)]


def test_what_is_bitwise_has_no_words() -> None:
    rows: Any = sd.source("R", unit="tick")
    with pytest.raises(sd.errors.QueryError, match=r"there is no SQL for the expression e.v & 1"):
        rows.where(lambda e: (e.v & 1) == 1).to_sql()
    assert rows.where(lambda e: (e.v > 1) & (e.v < 5)).to_sql() == "SELECT * FROM R WHERE (v > 1) AND (v < 5)"


def test_comments_are_of_lines_or_between_marks() -> None:
    assert answer("SELECT v /* two\nlines -- */ FROM S -- the end\nWHERE k /**/ = '/* a */' OR k = 'a'") == [(1,)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT v FROM S WHERE k = 'a", "this text has no closing quote"),
        ("SELECT v FROM S WHERE k == 'a'", "equality is written ="),
        ("SELECT v FROM S ORDER BY v", "rows have times, and no other order"),
        ("SELECT v FROM S WHERE k LIKE 'a%'", "give a function of your own"),
        ("SELECT k || 'x' AS y FROM S", "texts are put together with +"),
        ("SELECT k FROM S UNION SELECT k FROM T", "SELECT DISTINCT"),
        ("SELECT V FROM S", "did you mean 'v'?"),
        ("SELECT v FROM s", "did you mean 'S'?"),
        ("SELECT A.v FROM S AS A WHERE S.v > 1", "there is no source 'S'; there are: A"),
        ("SELECT A.v FROM S A", ""),
    ],
)
def test_errors_say_what_to_write(text: str, said: str) -> None:
    if not said:
        sd.sql(text, S=S)
        return
    with pytest.raises(sd.errors.SqlError) as raised:
        sd.sql(text, S=S, T=T)
    assert said in str(raised.value)


@pytest.mark.parametrize("many", [51, 3000])
def test_a_list_may_be_long(many: int) -> None:
    rows = sd.from_rows([(0, 1, {"v": v}) for v in range(0, 2 * many, many // 3)])
    numbers = [str(n) for n in range(many)]
    inside = [(v,) for v in range(0, many, many // 3)]
    for text in (
        f"v IN ({', '.join(numbers)})",
        f"NOT v NOT IN ({', '.join(numbers)})",
        " OR ".join(f"v = {n}" for n in numbers),
    ):
        assert answer(f"SELECT v FROM R WHERE {text}", R=rows) == sorted(inside, key=repr)


def test_everything_over_batches_is_without_the_timestamp() -> None:
    tuples = [({"v": 1}, 1), ({"v": 1}, 2)]
    assert sd.sql("SELECT DISTINCT * FROM S [ROWS 2]", S=tuples).states()[-1] == ((2, 1), [sd.Record(v=1)])
    assert sd.sql("SELECT *, t FROM S [ROWS 2]", S=tuples).states()[-1][1] == [sd.Record(v=1, t=1), sd.Record(v=1, t=2)]
    pairs = sd.sql("SELECT A.*, B.t FROM S [ROWS 1] AS A, S [ROWS 1] AS B", S=tuples).states()[-1][1]
    assert pairs == [sd.Record(v=1, t=2)]
    later = sd.sql("SELECT * FROM S [ROWS 1]", cql.stream_group(S=[])).open()
    assert later.push([("S", {"v": 7}, 1)]).istream == [((1, 1), sd.Record(v=7))]


def test_what_is_not_read_makes_no_difference() -> None:
    group = cql.stream_group(G=[({"v": 1}, 1)])
    assert isinstance(sd.sql("SELECT v FROM S", group, S=S), sd.Stream)
    unread = {"T": sd.source("T"), "U": [(7, 99)]}
    assert sd.sql("SELECT v FROM S [ROWS 1]", S=S, **unread).states() == sd.sql("SELECT v FROM S [ROWS 1]", S=S).states()
    with pytest.raises(sd.errors.QueryError, match="T=5 is no stream"):
        sd.sql("SELECT v FROM S", S=S, T=5)
