"""What every picture is: text for terminals, SVG for pages and Jupyter, and a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path

from streamdsl.temporal.display import Displayed


class Drawing(Displayed, ABC):
    """A picture: `str()` of it is text, Jupyter shows its SVG, and `save` writes either."""

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def svg(self) -> str:
        """Return the picture as the text of an SVG document, which needs nothing else."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file whose name ends in `.svg`, and the text to any other.

        >>> import streamdsl as sd, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sd.from_rows([(1, 5, "a")]).run().timeline().save(f"{folder}/rows.svg")
        """
        Path(path).write_text(self.svg() if Path(path).suffix == ".svg" else f"{self}\n", encoding="utf-8")

    def __repr__(self) -> str:
        return str(self)

    def _picture(self) -> Drawing:
        return self
