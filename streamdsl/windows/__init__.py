"""Window kinds, one file each, and the policies of windows."""

from streamdsl.windows.calendar_periods import CalendarPeriods, Period
from streamdsl.windows.count import Count, CountBy
from streamdsl.windows.grid import Grid, unending
from streamdsl.windows.hopping import Hopping
from streamdsl.windows.policies import Clip, Output, check_policies
from streamdsl.windows.sequence import Sequenced
from streamdsl.windows.session import Session
from streamdsl.windows.snapshot import Snapshot
from streamdsl.windows.spec import Ends, Windows

__all__ = [
    "CalendarPeriods",
    "Clip",
    "Count",
    "CountBy",
    "Ends",
    "Grid",
    "Hopping",
    "Output",
    "Period",
    "Sequenced",
    "Session",
    "Snapshot",
    "Windows",
    "check_policies",
    "unending",
]
