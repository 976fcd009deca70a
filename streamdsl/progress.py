"""Out-of-order processing (paper 004). The short name of the package `streamdsl.papers.out_of_order`."""

from streamdsl.papers.out_of_order import *  # noqa: F403
from streamdsl.papers.out_of_order import __all__ as __all__
