"""SECRET (paper 000): how other engines run a windowed query, and why their answers differ.

    >>> from streamdsl import secret
    >>> tuples = [(10, 30), (20, 31), (30, 36), (40, 37)]
    >>> secret.simulate(secret.STREAMBASE, 5, 1, tuples, sum).outputs
    [10, 30, 30, 30, 30, 20, 30]
    >>> secret.simulate(secret.CORAL8, 5, 1, tuples, sum).outputs
    [10, 30, 20, 30]

A tuple is `(value, t_app, t_sys, bid)`; of `(value, t_app)` the n-th arrives at n, in a batch of its own.
"""

from streamdsl.papers.secret.comparison import Comparison, Difference, compare
from streamdsl.papers.secret.equivalence import Equivalence, Port, agreement, equivalent, port
from streamdsl.papers.secret.inference import Inferred, Witness, infer
from streamdsl.papers.secret.input_feeds import at_batch_ends, bundle, in_order, max_delay, restamp, slack, system_time, until
from streamdsl.papers.secret.join_simulation import Joined, Side, simulate_join
from streamdsl.papers.secret.known_engines import (
    BYTEWAX,
    DUCKDB_BUCKET,
    PATHWAY,
    PATHWAY_ONCE,
    POLARS_DYNAMIC,
    SPARK_APPEND,
    SPARK_UPDATE,
    STREAMDSL,
    STREAMDSL_FINAL,
)
from streamdsl.papers.secret.profile import CORAL8, ORACLE_CEP, STREAM, STREAMBASE, Profile, Report, Tick
from streamdsl.papers.secret.profile_trace import Trace, simulate
from streamdsl.papers.secret.profiled_query import run_as_of as run_as_of  # how `stream.as_of` runs under a profile
from streamdsl.papers.secret.search import Assumption
from streamdsl.papers.secret.simulation import Reported, Simulation, Step
from streamdsl.papers.secret.start import At, FromFirst, Grid, Since
from streamdsl.papers.secret.tick import ticks
from streamdsl.papers.secret.tuples import HEARTBEAT, Tuple
from streamdsl.papers.secret.window_scope import Scope, lifetime, scope, scopes

__all__ = [
    "BYTEWAX",
    "CORAL8",
    "DUCKDB_BUCKET",
    "HEARTBEAT",
    "ORACLE_CEP",
    "PATHWAY",
    "PATHWAY_ONCE",
    "POLARS_DYNAMIC",
    "SPARK_APPEND",
    "SPARK_UPDATE",
    "STREAM",
    "STREAMBASE",
    "STREAMDSL",
    "STREAMDSL_FINAL",
    "Assumption",
    "At",
    "Comparison",
    "Difference",
    "Equivalence",
    "FromFirst",
    "Grid",
    "Inferred",
    "Joined",
    "Port",
    "Profile",
    "Report",
    "Reported",
    "Scope",
    "Side",
    "Simulation",
    "Since",
    "Step",
    "Tick",
    "Trace",
    "Tuple",
    "Witness",
    "agreement",
    "at_batch_ends",
    "bundle",
    "compare",
    "equivalent",
    "in_order",
    "infer",
    "lifetime",
    "max_delay",
    "port",
    "restamp",
    "scope",
    "scopes",
    "simulate",
    "simulate_join",
    "slack",
    "system_time",
    "ticks",
    "until",
]
