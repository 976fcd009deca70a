"""The grammar of the SQL that `sd.sql` reads: CQL's windows and SPREAD (paper 002), and temporal windows in GROUP BY."""

from __future__ import annotations

from typing import Final

WORDS: Final = (
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "ELSE",
    "END",
    "EVERY",
    "FALSE",
    "FROM",
    "GROUP",
    "HAVING",
    "HOP",
    "IN",
    "INTO",
    "IS",
    "KEEP",
    "NOW",
    "NULL",
    "ON",
    "OR",
    "OUTPUT",
    "PARTITION",
    "RANGE",
    "ROWS",
    "SELECT",
    "SESSION",
    "SLIDE",
    "SNAPSHOT",
    "SPREAD",
    "THEN",
    "TRUE",
    "TUMBLE",
    "UNBOUNDED",
    "UNION",
    "WHEN",
    "WHERE",
)
"""The keywords, which are not case-sensitive."""

_RULES: Final = r"""
program: (statement ";")* query ";"?
?statement: NAME "=" query -> view
    | _SPREAD [ALL] names [_ON names] _INTO names -> spread

?query: term (_UNION ALL term)* -> union
?term: select
    | TO_STREAM [SEMANTICS] "(" query ")" -> streamed
    | "(" query ")"
select: _SELECT [TO_STREAM [SEMANTICS]] [DISTINCT] items _FROM sources [where] [group] [having] [every]

items: item ("," item)*
?item: "*" -> everything
    | NAME "." "*" -> everything
    | expr [[_AS] NAME] -> item
where: _WHERE expr
group: (_GROUP _BY | _GROUP "-" _BY) part ("," part)*
?part: window | expr
having: _HAVING expr
every: _OUTPUT _EVERY span

sources: source joined*
joined: ("," | _CROSS) source -> cross
    | [OUTER] _JOIN source [_ON expr] -> join
source: NAME [frame] [[_AS] NAME] -> named
    | "(" query ")" [_AS] NAME -> nested

?frame: "[" [_PARTITION _BY names] extent [_SLIDE span] "]" -> frame
    | _KEEP INTEGER _ROWS -> keep
?extent: _RANGE span -> range
    | _RANGE _UNBOUNDED -> unbounded
    | _ROWS INTEGER -> rows
    | _ROWS _UNBOUNDED -> unbounded
    | _UNBOUNDED -> unbounded
    | _NOW -> now

window: _TUMBLE "(" span ["," span] ")" -> tumble
    | _HOP "(" span "," span ["," span] ")" -> hop
    | _SESSION "(" span ["," span] ")" -> session
    | _SNAPSHOT "(" ")" -> snapshot
span: (NUMBER | INTEGER) [NAME]
names: NAME ("," NAME)*

?expr: either
?either: both (_OR both)*
?both: negated (_AND negated)*
?negated: NOT negated -> not_
    | test
?test: sum
    | sum COMPARISON sum -> compared
    | sum _IS [NOT] _NULL -> is_null
    | sum [NOT] _BETWEEN sum _AND sum -> between
    | sum [NOT] _IN "(" expr ("," expr)* ")" -> within
?sum: product (SIGN product)*
?product: signed (FACTOR signed)*
?signed: "-" signed -> negative
    | atom
?atom: literal
    | NAME "(" [DISTINCT] [arguments] ")" -> call
    | _CAST "(" expr _AS NAME ")" -> cast
    | _CASE (_WHEN expr _THEN expr)+ [_ELSE expr] _END -> case
    | NAME ("." NAME)* -> column
    | "(" expr ")"
arguments: "*" -> all_rows
    | expr ("," expr)*
?literal: INTEGER -> integer
    | NUMBER -> number
    | STRING -> string
    | _TRUE -> true
    | _FALSE -> false
    | _NULL -> null

ALL.2: /ALL\b/i
DISTINCT.2: /DISTINCT\b/i
NOT.2: /NOT\b/i
OUTER.2: /(LEFT|RIGHT|FULL)(\s+OUTER)?(?=\s+JOIN\b)/i
_CROSS.2: /CROSS\s+JOIN\b/i
_JOIN.2: /(INNER\s+)?JOIN\b/i
TO_STREAM.2: /[IDR]STREAM\b/i
SEMANTICS.2: /(DIF|DEL)\b/i
COMPARISON: "<=" | ">=" | "<>" | "!=" | "=" | "<" | ">"
SIGN: "+" | "-"
FACTOR: "*" | "/" | "%"
INTEGER.2: /\d+(?![\d.eE])/
NUMBER: /\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?/
STRING: /'([^']|'')*'/
NAME: /(?!(?i:{reserved})\b)(?!(?i:{joins})\s+JOIN\b)[A-Za-z_]\w*'*|"([^"]|"")*"/
COMMENT: /--[^\n]*|\/\*(.|\n)*?\*\//
%import common.WS
%ignore WS
%ignore COMMENT
"""

RESERVED: Final = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "JOIN",
    "ON",
    "UNION",
    "AS",
    "AND",
    "OR",
    "NOT",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "ORDER",
    "LIMIT",
    "DISTINCT",
)
"""The keywords that are names only in double quotes."""

OTHER_JOINS: Final = ("NATURAL", "SEMI", "ANTI", "ASOF")
"""Words that are not a source's alias before JOIN, because other systems have such joins."""

_TERMINALS: Final = "".join(f"_{word}.2: /{word}\\b/i\n" for word in WORDS)
GRAMMAR: Final = _RULES.replace("{reserved}", "|".join(RESERVED)).replace("{joins}", "|".join(OTHER_JOINS)) + _TERMINALS
"""The grammar in lark's notation: the rules, and a terminal for each keyword, with priority over names."""

SIGNS: Final = {
    "NAME": "a name",
    "INTEGER": "a number",
    "NUMBER": "a number",
    "STRING": "a text",
    "TO_STREAM": "ISTREAM",
    "SEMANTICS": "DIF",
    "OUTER": "LEFT",
    "COMPARISON": "=",
    "SIGN": "+",
    "FACTOR": "*",
    "STAR": "*",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "COMMA": ",",
    "DOT": ".",
    "MINUS": "-",
    "EQUAL": "=",
    "SEMICOLON": ";",
    "$END": "the end",
}
"""The names of terminals in error messages, except for keywords."""

INSTEAD: Final = {
    "==": "equality is written =",
    "|": "texts are put together with +",
    "'": "a text ends with ', and '' in it is one '",
    "LIKE": "give a function of your own: sd.sql(text, S=stream, like=sd.udf(...)), and call it: like(name)",
    "LIMIT": "a stream has no first rows; the largest in each window: stream.tumbling_window(10).top_k(3, by)",
    "ORDER": "rows have times, and no other order; the largest in each window: stream.tumbling_window(10).top_k(3, by)",
    "UNION": "UNION ALL keeps duplicates; without them: SELECT DISTINCT * FROM (... UNION ALL ...) AS t",
}
"""Hints for syntax of other systems, by the unexpected word."""


def quoted(name: str) -> str:
    """Return a name as a query writes it: in double quotes if it is not a plain name or could be a keyword.

    >>> quoted("fare"), quoted("range"), quoted("total fare")
    ('fare', '"range"', '"total fare"')
    """
    words = {*WORDS, *RESERVED, "ALL", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "ISTREAM", "DSTREAM", "RSTREAM"}
    plain = name.isascii() and name.isidentifier() and name.upper() not in words
    return name if plain else '"' + name.replace('"', '""') + '"'
