"""Profiles of today's engines, as `infer` found them; where ticks cannot be told apart, one of them (docs/secret-profiles.md).

Each is held to what its engine has answered (`tests/witnesses`), and is a name of `streamdsl.secret` from here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from streamdsl.papers.secret.input_feeds import at_batch_ends, in_order, slack
from streamdsl.papers.secret.profile import Profile, Report, Tick
from streamdsl.papers.secret.start import Grid, Since
from streamdsl.papers.secret.window_scope import Scope

_ON_CLOSE: Final = Report(window_close=True, non_empty=True)
_EACH_CHANGE: Final = Report(content_change=True, non_empty=True)
_WITHOUT_LATE: Final = partial(slack, delay=0)

STREAMDSL: Final = Profile("streamdsl", Grid(), _EACH_CHANGE, Tick.TUPLE, Scope.ALL_OPEN)
"""A speculative session into which tuples are pushed one by one."""
STREAMDSL_FINAL: Final = Profile("streamdsl, final", Grid(), _ON_CLOSE, Tick.TUPLE)
DUCKDB_BUCKET: Final = Profile("DuckDB, time_bucket", Grid(), _ON_CLOSE, Tick.TUPLE, feed=in_order)
POLARS_DYNAMIC: Final = Profile("Polars, group_by_dynamic", Grid(whole=False), _ON_CLOSE, Tick.TUPLE)
BYTEWAX: Final = Profile("Bytewax", Grid(), _ON_CLOSE, Tick.TUPLE, feed=_WITHOUT_LATE)
PATHWAY: Final = Profile("Pathway", Grid(), _EACH_CHANGE, Tick.BATCH, Scope.ALL_OPEN)
PATHWAY_ONCE: Final = Profile("Pathway, exactly once", Grid(), _ON_CLOSE, Tick.BATCH, feed=at_batch_ends)
SPARK_APPEND: Final = Profile("Spark, append", Since(0), _ON_CLOSE, Tick.BATCH, feed=partial(at_batch_ends, behind=1))
"""With a watermark, which begins at 1970, and that of the batch before closes windows: a late row has a batch more of time."""
SPARK_UPDATE: Final = Profile("Spark, update", Since(0), _EACH_CHANGE, Tick.BATCH, Scope.ALL_OPEN)

if not TYPE_CHECKING:  # type checkers take every public name
    __all__ = [name for name, value in list(vars().items()) if isinstance(value, Profile) and not name.startswith("_")]
