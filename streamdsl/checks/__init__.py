"""What is wrong with a query can be seen before it runs: state that no CTI frees, CTIs that are held back, lost speed.

A program calls `check`; the command line is `python -m streamdsl check module:query`.
"""

from streamdsl.checks.all_checks import CHECKS, findings
from streamdsl.checks.finding import Finding, Level
from streamdsl.checks.query import check

__all__ = ["CHECKS", "Finding", "Level", "check", "findings"]
