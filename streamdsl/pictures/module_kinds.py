"""What each kind of module does, as a picture: rows in a window, or one by one, and what comes of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from streamdsl.pictures.picture_object import Drawing
from streamdsl.pictures.svg import COLOURS, bar, label, picture

WIDE, HIGH = 224, 128
_IN: Final = ((14.0, 70.0), (40.0, 88.0), (74.0, 102.0))
"""Where the rows are that go in."""


class _Kind(NamedTuple):
    title: str
    used: str
    out: tuple[tuple[float, float], ...]
    in_window: bool


_KINDS: Final = {
    "uda": _Kind("UDA: one value per window", "aggregate(module, f)", ((128.0, 216.0),), True),
    "udo": _Kind("UDO: any rows per window", "apply(module, f)", ((128.0, 170.0), (152.0, 216.0)), True),
    "udso": _Kind("UDSO: row by row, with a state", "scan(module, f)", ((128.0, 184.0), (188.0, 216.0)), False),
    "udf": _Kind("UDF: one row, one value", "in lambdas: f(e.x)", ((128.0, 184.0), (154.0, 202.0), (188.0, 216.0)), False),
}
_STYLE: Final = ".sd .around{fill-opacity:.08;stroke-dasharray:4 3}.sd .to{fill:none;stroke:currentColor;stroke-width:1.3}"


class ModuleKinds(Drawing):
    """The picture of some kinds of modules: `"uda"`, `"udo"`, `"udso"`, `"udf"`.

    >>> print(ModuleKinds(["udf", "uda"]))
    UDA: one value per window, aggregate(module, f)
    UDF: one row, one value, in lambdas: f(e.x)
    """

    def __init__(self, kinds: Collection[str]) -> None:
        self.kinds = [kind for kind in _KINDS if kind in kinds]

    def __str__(self) -> str:
        return "\n".join(f"{_KINDS[kind].title}, {_KINDS[kind].used}" for kind in self.kinds)

    def svg(self) -> str:
        """Return the kinds side by side as the text of an SVG document."""
        parts = [part for place, kind in enumerate(self.kinds) for part in _drawn(_KINDS[kind], place * WIDE)]
        return picture(parts, WIDE * max(len(self.kinds), 1) + 16, HIGH, _STYLE)


def _drawn(kind: _Kind, left: int) -> Iterator[str]:
    yield f'<g transform="translate({left} 0)">'
    yield label(12, 20, kind.title, "name")
    yield label(12, HIGH - 12, kind.used, "quiet")
    if kind.in_window:
        yield f'<rect class="around" x="8" y="32" width="100" height="66" rx="4" fill="{COLOURS[4]}" stroke="{COLOURS[4]}"/>'
    yield from (bar(low, high, 40 + 18 * line, 12, COLOURS[0]) for line, (low, high) in enumerate(_IN))
    yield '<path class="to" d="M112,64H122M118,60l4,4l-4,4"/>'
    tops = [40 + 18 * line for line in range(len(kind.out))] if len(kind.out) > 1 else [58]
    yield from (bar(low, high, top, 12, COLOURS[3]) for top, (low, high) in zip(tops, kind.out, strict=True))
    yield "</g>"
