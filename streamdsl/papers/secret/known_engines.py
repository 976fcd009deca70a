"""Profiles of current engines, as `infer` finds them; of equivalent ticks one (docs/secret-profiles.md)."""

from __future__ import annotations

from typing import Final

from streamdsl.papers.secret.profile import Profile, Report, Tick
from streamdsl.papers.secret.scope import Scope
from streamdsl.papers.secret.start import Grid

_ON_CLOSE: Final = Report(window_close=True, non_empty=True)
_EACH_CHANGE: Final = Report(content_change=True, non_empty=True)

STREAMDSL: Final = Profile("streamdsl", Grid(), _EACH_CHANGE, Tick.TUPLE, Scope.ALL_OPEN)
"""A speculative session into which tuples are pushed one by one."""
STREAMDSL_FINAL: Final = Profile("streamdsl, final", Grid(), _ON_CLOSE, Tick.TUPLE)
DUCKDB_BUCKET: Final = Profile("DuckDB, time_bucket", Grid(), _ON_CLOSE, Tick.TUPLE)
POLARS_DYNAMIC: Final = Profile("Polars, group_by_dynamic", Grid(whole=False), _ON_CLOSE, Tick.TUPLE)
BYTEWAX: Final = Profile("Bytewax", Grid(), _ON_CLOSE, Tick.TUPLE)
PATHWAY: Final = Profile("Pathway", Grid(), _EACH_CHANGE, Tick.BATCH, Scope.ALL_OPEN)
PATHWAY_ONCE: Final = Profile("Pathway, exactly once", Grid(), _ON_CLOSE, Tick.BATCH)
SPARK_APPEND: Final = Profile("Spark, append", Grid(), _ON_CLOSE, Tick.BATCH)
SPARK_UPDATE: Final = Profile("Spark, update", Grid(), _EACH_CHANGE, Tick.BATCH, Scope.ALL_OPEN)
