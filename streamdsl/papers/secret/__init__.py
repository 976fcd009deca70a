"""SECRET (paper 000): how other engines run a windowed query, and why their answers differ.

    >>> from streamdsl import secret
    >>> tuples = [(10, 30), (20, 31), (30, 36), (40, 37)]
    >>> secret.simulate(secret.STREAMBASE, 5, 1, tuples, sum).outputs
    [10, 30, 30, 30, 30, 20, 30]
    >>> secret.simulate(secret.CORAL8, 5, 1, tuples, sum).outputs
    [10, 30, 20, 30]

A tuple is `(value, t_app, t_sys, bid)`; of `(value, t_app)` the n-th arrives at n, in a batch of its own.
"""

from typing import TYPE_CHECKING

from streamdsl.papers.secret import known_engines, public_names
from streamdsl.papers.secret.known_engines import *  # noqa: F403
from streamdsl.papers.secret.profiled_query import run_as_of as run_as_of  # how `stream.as_of` runs under a profile
from streamdsl.papers.secret.public_names import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers take all that is imported by a star
    __all__ = sorted([*public_names.__all__, *known_engines.__all__])
