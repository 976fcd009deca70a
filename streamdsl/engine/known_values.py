"""The numbers of a dictionary's values that a table of keys has given, and which values may wait to be made."""

from __future__ import annotations

from weakref import ref

from streamdsl.expr.deferred import Codebook, CodeNumbers, ColumnSource
from streamdsl.expr.table import Rows


class KnownValues:
    """What is known of the values of sources. Those of the first one may wait to be made, as long as no other one comes.

    A table that is read whole is the only source. Of a second one each value is looked at, so that equal ones are found.
    """

    def __init__(self) -> None:
        self._first: ref[ColumnSource] | None = None
        self._is_alone = True
        """Whether only one source has been seen."""
        self._book: tuple[Codebook, CodeNumbers] | None = None
        """The latest codebook, and the numbers of its codes."""
        self._n_waited = 0
        """How many values wait, or have waited."""

    def recall(self, source: ColumnSource) -> CodeNumbers | None:
        """Return the numbers that an earlier source has for the codes of this one."""
        book = source.codebook if self._book is not None else None
        return self._book[1] if book is not None and self._book is not None and book.is_same(self._book[0]) else None

    def note(self, source: ColumnSource, known: CodeNumbers) -> None:
        """Record the numbers of a source's codes."""
        if (book := source.codebook) is not None:
            self._book = book, known

    def waiting(self, source: ColumnSource, codes: Rows, n_values: int) -> ColumnSource | None:
        """Return the values of codes that were not asked for yet as values that may wait; None if they must be looked at.

        They may wait where no others can be like them: all `n_values` that have numbers are of the same source.
        """
        self._first = self._first or ref(source)
        self._is_alone &= self._first() is source  # in a union two sources take turns
        found = source.deferred_values(codes) if self._is_alone and self._n_waited == n_values else None
        self._n_waited += 0 if found is None else found.size
        return found
