"""A gallery of user-defined modules: one file each, with a doctest."""

from udm_examples.busiest import Busiest, Busy
from udm_examples.median import Median

__all__ = ["Busiest", "Busy", "Median"]
