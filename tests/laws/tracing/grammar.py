"""Random lambdas: expressions over a row, most of which no one would write."""

from __future__ import annotations

import functools
from typing import Any, Final

from hypothesis import strategies as st

import tests.laws.tracing.names as names
import tests.laws.tracing.payloads as payloads
from streamdsl.expr.expression_functions import cast, coalesce, contains, is_none, length, local_time, not_, truncate, when
from tests.laws.tracing.names import Lambda

_NAMES: Final[dict[str, Any]] = {
    **vars(names),
    **vars(payloads),
    **{f.__name__: f for f in (when, is_none, not_, cast, coalesce, contains, length, local_time, truncate)},
}

_NUMBERS: Final = ["e.i", "e.j", "e.f", "e.g", "e.b", "e.d", "e.p.x", "0", "1", "-3", "0.5", "True", "LIMIT", "HALF", "TENTH"]
_LEAVES: Final = [*_NUMBERS, "e", "e.m", "e.s", "e.o", "e.t", "e.p", "None", "'ab'", "NAME", "HOUR", "WHEN"]

# `$` is any expression, `@` a leaf, `#` a number. Only numbers are multiplied: text times a number may be larger than memory.
# Only leaves are chosen by when(): Python evaluates both sides, an expression only one. `~` of a boolean is refused.
_FORMS: Final = """
($ + $)  ($ - $)  (# * #)  ($ / $)  ($ // $)  ($ % $)  ($ & $)  ($ | $)  ($ ^ $)  (-$)  (+$)  (~e.i)  (~e.s)  abs($)
($ == $)  ($ != $)  ($ < $)  ($ <= $)  ($ > $)  ($ >= $)  ($ < $ < $)  ($ == $ != $)
($ and $)  ($ or $)  (not $)  ($ if $ else $)  ($ is None)  ($ in $)  not_($)  is_none($)  when($).then(@).otherwise(@)
($).upper()  ($).strip()  ($).startswith('a')  ($).find('b')  ($).date()  ($).year  ($).real  ($).missing  ($).date
cast($, int)  cast($, float)  cast($, str)  cast($, bool)  coalesce($, $)  coalesce($, $, $)  contains($, $)  length($)
($).split('b')  ($)[$]  ($)[:$]  ($)[$:$]  ($)[::-1]  local_time($, 'Europe/Vienna')  local_time(#, 'Europe/Vienna', 's')
truncate($, '1h')  truncate(#, 7, 3)
clamp($)  clamp($, low=$)  clamp(low=$, x=$)  held($)  kind($)  helper($)  str($)  ('%s' % $)  (lambda x: x)($)
($, $)  ($, $)[0]  ($, $)[1:]  Out($)  Out($, $)  Out(b=$, a=$)  Pair($)  (y := $)  ((y := $), $, y)  ((y := $), y + $)
"""
_FORM: Final = st.sampled_from([form for line in _FORMS.strip().splitlines() for form in line.split("  ")])


def _filled(form: str, parts: tuple[str, ...]) -> str:
    return functools.reduce(lambda text, part: text.replace("$", part, 1), parts, form)


@st.composite
def _compound(draw: st.DrawFn, parts: st.SearchStrategy[str]) -> str:
    form = draw(_FORM)
    for mark, leaves in (("@", _LEAVES), ("#", _NUMBERS)):
        while mark in form:
            form = form.replace(mark, draw(st.sampled_from(leaves)), 1)
    return _filled(form, tuple(draw(parts) for _ in range(form.count("$"))))


_expressions = st.recursive(st.sampled_from(_LEAVES), _compound, max_leaves=8)
_results = st.one_of(_expressions, st.builds("{{'a': {}, 'b': {}}}".format, _expressions, _expressions))


@st.composite
def lambdas(draw: st.DrawFn) -> tuple[str, Lambda]:
    """The text of a lambda, and the lambda."""
    text = f"lambda e, y=1: {draw(_results)}"
    return text, eval(text, dict(_NAMES))
