"""Functions of expressions, for lambdas and on `col(...)`: `import streamdsl.functions as f`, or `sd.functions`.

>>> import streamdsl as sd
>>> words = sd.from_rows([(1, 2, {"word": "tide"}), (3, 4, {"word": "ebb"})])
>>> words.where(lambda e: sd.functions.length(e.word) > 3).run().cht()
CHT
  [1, 2) word='tide'
"""

from streamdsl.expr.expression_functions import (
    cast,
    coalesce,
    col,
    contains,
    is_none,
    length,
    lit,
    local_time,
    not_,
    param,
    truncate,
    udf,
    when,
)

__all__ = [
    "cast",
    "coalesce",
    "col",
    "contains",
    "is_none",
    "length",
    "lit",
    "local_time",
    "not_",
    "param",
    "truncate",
    "udf",
    "when",
]
