"""CQL's streams and relations, with SPREAD (paper 002). The short name of the package `streamdsl.papers.cql`."""

from streamdsl.papers.cql import *  # noqa: F403
from streamdsl.papers.cql import __all__ as __all__
