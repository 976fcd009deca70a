"""The names of `streamdsl.secret` besides the profiles of today's engines."""

from streamdsl.papers.secret.comparison import Comparison, Difference, compare
from streamdsl.papers.secret.equivalence import Equivalence, Port, agreement, equivalent, port
from streamdsl.papers.secret.inference import Inferred, Witness, infer
from streamdsl.papers.secret.input_feeds import at_batch_ends, bundle, in_order, max_delay, restamp, slack, system_time, until
from streamdsl.papers.secret.join_simulation import Joined, Side, simulate_join
from streamdsl.papers.secret.profile import CORAL8, ORACLE_CEP, STREAM, STREAMBASE, Profile, Report, Tick
from streamdsl.papers.secret.profile_trace import Trace, simulate
from streamdsl.papers.secret.search import Assumption
from streamdsl.papers.secret.simulation import Reported, Simulation, Step
from streamdsl.papers.secret.start import At, FromFirst, Grid, Since
from streamdsl.papers.secret.tick import ticks
from streamdsl.papers.secret.tuples import HEARTBEAT, Tuple
from streamdsl.papers.secret.window_scope import Scope, lifetime, scope, scopes

__all__ = [
    "CORAL8",
    "HEARTBEAT",
    "ORACLE_CEP",
    "STREAM",
    "STREAMBASE",
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
