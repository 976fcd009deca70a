"""Queries and payloads of a thousand levels: they run, or say what is wrong. Each in a process that has seen none before."""

from __future__ import annotations

import pytest

from tests.fresh_process import in_fresh_process

HEAD = """
import operator, functools
import streamdsl as sd
from streamdsl.errors import QueryError, SchemaError
rows = [(1, 5, 3)]
s = sd.source("s", int)
"""
CHAIN = """
q = s
for n in range(1000):
    q = q.where(lambda e: e > 0) if n % 2 else q.select(lambda e: e + 1)
"""
QUERIES = {
    "a chain": CHAIN + "assert [row.payload for row in q.bind(s=rows).run().cht()] == [503]",
    "a chain in the reference": CHAIN + "assert len(q.bind(s=rows).run(engine='reference').cht()) == 1",
    "a chain shown and checked": CHAIN
    + "assert q.explain() and q.explain(rules=True) and repr(q) and q._repr_html_() and not sd.checks.check(q)",
    "a chain as JSON": CHAIN + "assert sd.composing.plan_from_json(q.plan().to_json()) == q.plan()",
    "a session": CHAIN + "assert len(q.open().push([sd.Insert('a', 1, 5, 3)])) == 1",
    "many shifts": "q = s\nfor _ in range(1000): q = q.shift(1)\nassert q.bind(s=rows).run().cht().rows[0].le == 1001",
    "many terms": "e = functools.reduce(operator.add, [sd.col('value')] * 1000)\n"
    "assert repr(e) and s.select(e).explain() and s.select(e).bind(s=rows).run().cht().rows[0].payload == 3000",
    "many terms in the reference": "e = functools.reduce(operator.or_, [sd.col('value') == n for n in range(1000)])\n"
    "assert len(s.where(e).bind(s=rows).run(engine='reference').cht()) == 1 and s.where(e).plan().to_json()",
    "SQL": "text = 'SELECT * FROM s WHERE ' + ' OR '.join(f'value = {n}' for n in range(1000))\n"
    "assert len(sd.sql(text, s=s).bind(s=rows).run().cht()) == 1",
}
DEEP = {
    "dict": "functools.reduce(lambda inner, _: {'v': inner}, range(1000), 1)",
    "list": "{'v': functools.reduce(lambda inner, _: [inner], range(1000), 1)}",
    "tuple": "functools.reduce(lambda inner, _: (inner,), range(1000), 1)",
}


def execute(program: str) -> None:
    exec(HEAD + program, {})


def run(program: str) -> None:
    in_fresh_process(execute, program)


@pytest.mark.parametrize("name", QUERIES)
def test_queries_of_a_thousand_levels_run(name: str) -> None:
    run(QUERIES[name])


def test_queries_of_very_many_levels_are_refused_with_a_remedy() -> None:
    run(
        """
e = functools.reduce(operator.add, [sd.col('value')] * 3000)
try: s.select(e)
except QueryError as error: assert "3000 levels deep, and 2000 are the most" in str(error) and "Hint" in str(error)
else: raise AssertionError
"""
    )


@pytest.mark.parametrize("name", DEEP)
def test_payloads_nested_a_thousand_deep_are_refused_with_a_remedy(name: str) -> None:
    run(
        f"""
p = {DEEP[name]}
t = sd.source("t")
session = t.group_by(lambda e: 1).tumbling_window(9).aggregate(rows=sd.count()).open()
for act in (lambda: t.bind(t=[(1, 5, p)]).run(), lambda: t.distinct().bind(t=[(1, 5, p)]).run(engine="reference"),
            lambda: session.push([sd.Insert("a", 1, 5, p)])):
    try: act()
    except SchemaError as error: assert "inside others, deeper than Python can look" in str(error)
    else: raise AssertionError
"""
    )


def test_the_deepest_query_leaves_python_a_limit_with_which_deep_values_do_not_end_the_process() -> None:
    run(
        """
import sys
q = functools.reduce(lambda q, _: q.shift(1), range(1999), s)
assert q.bind(s=rows).run().cht()
assert 10_000 < sys.getrecursionlimit() <= 12_000
value = functools.reduce(lambda inner, _: [inner], range(100_000), [])
for act in (repr, lambda value: value == functools.reduce(lambda inner, _: [inner], range(100_000), [])):
    try: act(value)
    except RecursionError: pass
"""
    )
