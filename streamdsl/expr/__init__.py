"""Scalar expressions: nodes, traces of lambdas, and what they evaluate to."""

from streamdsl.expr.describe import describe
from streamdsl.expr.evaluate import (
    Inputs,
    RowError,
    evaluate,
    evaluate_deferred,
    evaluate_nested,
    key_row,
    key_values,
    project,
    truth,
)
from streamdsl.expr.expression_functions import (
    Udf,
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
from streamdsl.expr.facade import E
from streamdsl.expr.recording import NotTraceable
from streamdsl.expr.row_evaluator import evaluate_row, holds_row, project_row
from streamdsl.expr.sides import swapped, without_row
from streamdsl.expr.tracing import trace

__all__ = [
    "E",
    "Inputs",
    "NotTraceable",
    "RowError",
    "Udf",
    "cast",
    "coalesce",
    "col",
    "contains",
    "describe",
    "evaluate",
    "evaluate_deferred",
    "evaluate_nested",
    "evaluate_row",
    "holds_row",
    "is_none",
    "key_row",
    "key_values",
    "length",
    "lit",
    "local_time",
    "not_",
    "param",
    "project",
    "project_row",
    "swapped",
    "trace",
    "truncate",
    "truth",
    "udf",
    "when",
    "without_row",
]
