"""SECRET (paper 000): how other engines run a windowed query, and why their answers differ.

    >>> from streamdsl import secret
    >>> tuples = [(10, 30), (20, 31), (30, 36), (40, 37)]
    >>> secret.simulate(secret.STREAMBASE, 5, 1, tuples, sum).outputs
    [10, 30, 30, 30, 30, 20, 30]
    >>> secret.simulate(secret.CORAL8, 5, 1, tuples, sum).outputs
    [10, 30, 20, 30]

A tuple is `(value, t_app, t_sys, bid)`; of `(value, t_app)` the n-th arrives at n, in a batch of its own.
"""

from streamdsl.secret.comparison import Comparison, Difference, compare
from streamdsl.secret.equivalence import Equivalence, Port, agreement, equivalent, port
from streamdsl.secret.inference import Inferred, Witness, infer
from streamdsl.secret.inputs import bundle, max_delay, restamp, slack, system_time, until
from streamdsl.secret.joining import Joined, Side, simulate_join
from streamdsl.secret.profile import CORAL8, ORACLE_CEP, STREAM, STREAMBASE, Profile, Report, Tick
from streamdsl.secret.scope import Scope, lifetime, scope, scopes
from streamdsl.secret.search import Assumption
from streamdsl.secret.simulation import Reported, Simulation, Step
from streamdsl.secret.start import At, FromFirst, Grid
from streamdsl.secret.tick import ticks
from streamdsl.secret.today import (
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
from streamdsl.secret.trace import Trace, simulate
from streamdsl.secret.tuples import HEARTBEAT, Tuple

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
    "Step",
    "Tick",
    "Trace",
    "Tuple",
    "Witness",
    "agreement",
    "bundle",
    "compare",
    "equivalent",
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
