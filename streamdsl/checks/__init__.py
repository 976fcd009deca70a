"""Static checks of queries: state that no CTI frees, CTIs that are held back, and constructs that are slow.

Programs call `check`; the command line is `python -m streamdsl check module:query`.
"""

from streamdsl.checks.all_checks import CHECKS, findings
from streamdsl.checks.check_query import check
from streamdsl.checks.finding import Finding, Level

__all__ = ["CHECKS", "Finding", "Level", "check", "findings"]
