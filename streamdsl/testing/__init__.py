"""The public test kit: modules checked and run alone, event tables, marbles, timelines, random arrival orders, a virtual clock.

Hypothesis strategies are in `streamdsl.testing.strategies`, the only module here that needs hypothesis. The pytest plugin
`streamdsl_pytest` has fixtures for the functions that draw at random.
"""

from streamdsl.testing.compare import assert_cht_equal
from streamdsl.testing.connector_checks import SinkReport, SourceReport, check_sink, check_source
from streamdsl.testing.event_tables import events
from streamdsl.testing.isolated_run import run_udm
from streamdsl.testing.marbles import marbles
from streamdsl.testing.random_orders import arrival_order, arrival_orders
from streamdsl.testing.timelines import timeline
from streamdsl.testing.udm_checks import UdmReport, check_udm
from streamdsl.testing.virtual_clock import VirtualClock

__all__ = [
    "SinkReport",
    "SourceReport",
    "UdmReport",
    "VirtualClock",
    "arrival_order",
    "arrival_orders",
    "assert_cht_equal",
    "check_sink",
    "check_source",
    "check_udm",
    "events",
    "marbles",
    "run_udm",
    "timeline",
]
