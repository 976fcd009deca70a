"""The window sequences of Astral (paper 003). The short name of the package `streamdsl.papers.astral`."""

from streamdsl.papers.astral import *  # noqa: F403
from streamdsl.papers.astral import __all__ as __all__
