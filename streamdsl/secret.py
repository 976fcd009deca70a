"""SECRET (paper 000): how other engines run a windowed query. The short name of the package `streamdsl.papers.secret`."""

from streamdsl.papers.secret import *  # noqa: F403
from streamdsl.papers.secret import __all__ as __all__
