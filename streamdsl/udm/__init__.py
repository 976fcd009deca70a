"""User-defined modules: the base classes, plain functions as modules, and the built-in aggregates (paper 001, section IV)."""

from streamdsl.udm.aggregates import Agg
from streamdsl.udm.bases import (
    UDA,
    UDO,
    IncrementalUDA,
    IncrementalUDO,
    IntervalEvent,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
    WindowDescriptor,
)
from streamdsl.udm.functions import uda, udo

__all__ = [
    "UDA",
    "UDO",
    "Agg",
    "IncrementalUDA",
    "IncrementalUDO",
    "IntervalEvent",
    "TimeSensitiveIncrementalUDA",
    "TimeSensitiveIncrementalUDO",
    "TimeSensitiveUDA",
    "TimeSensitiveUDO",
    "WindowDescriptor",
    "uda",
    "udo",
]
