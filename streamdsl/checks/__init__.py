"""What is wrong with a query can be seen before it runs: state that no CTI frees, CTIs that are held back, lost speed."""

from streamdsl.checks.check import CHECKS, findings
from streamdsl.checks.finding import Finding, Level

__all__ = ["CHECKS", "Finding", "Level", "findings"]
