"""SECRET (paper 000): how other engines run a windowed query. The short name of the package `streamdsl.papers.secret`."""

from typing import TYPE_CHECKING

from streamdsl.papers.secret import *  # noqa: F403

if not TYPE_CHECKING:  # it is computed
    from streamdsl.papers.secret import __all__ as __all__
