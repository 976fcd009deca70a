"""The public test kit: event tables, comparison of CHTs, random arrival orders, modules run by themselves.

Hypothesis strategies are in `streamdsl.testing.strategies`, the only module here that needs hypothesis.
"""

from streamdsl.testing.compare import assert_cht_equal
from streamdsl.testing.orders import arrival_order, arrival_orders
from streamdsl.testing.tables import events
from streamdsl.testing.udm import run_udm

__all__ = ["arrival_order", "arrival_orders", "assert_cht_equal", "events", "run_udm"]
