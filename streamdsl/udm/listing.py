"""The repository's catalog: an entry per module, shown as text, as a table in Jupyter, or as a frame."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, overload

from streamdsl.expr.expression_functions import Udf
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.html import escape, table
from streamdsl.udm.bases import UDM, AnyUDA, AnyUDO
from streamdsl.udm.signatures import parameters, signature
from streamdsl.udm.stream_operator import UDSO

if TYPE_CHECKING:
    import pandas as pd

    from streamdsl.pictures.module_kinds import ModuleKinds

PROPERTIES: Final = (
    "time_sensitive",
    "incremental",
    "mergeable",
    "vectorized",
    "deterministic",
    "order_insensitive",
    "float_error",
    "time_bound",
    "ignores_ends_beyond_window",
    "reads",
    "commutes_with_filter_on",
)
"""The attributes of `UDM` that the catalog lists."""

_KINDS: Final[dict[str, type]] = {"uda": AnyUDA, "udo": AnyUDO, "udso": UDSO}
_TITLES: Final = ("name", "kind", "signature", "parameters", "properties", "description", "origin")
_NAME_WIDTH: Final = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the catalog: the module that a name stands for, or the error that its use raises."""

    name: str
    origin: str
    """The provider: this program, a distribution with its version, or streamdsl itself."""
    path: str
    """The place of its definition, `module:name`."""
    kind: str = ""
    """`"uda"` (for `aggregate`), `"udo"` (for `apply`), `"udso"` (for `scan`) or `"udf"` (for expressions)."""
    signature: str = ""
    parameters: str = ""
    """The parameters of `sd.udm(name, f, ...)` and `sd.udm.get(name, ...)` for it, with defaults."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """The module's `PROPERTIES`, without those that only an instance has; empty for a function of expressions."""
    description: str = ""
    """The first line of its docstring."""
    error: str | None = None

    @property
    def call(self) -> str:
        """The name, followed by the parameters if there are any."""
        return f"{self.name}({self.parameters})" if self.parameters else self.name

    @property
    def words(self) -> str:
        """The properties that differ from the defaults of `UDM`, as text."""
        return ", ".join(_word(name, value) for name, value in self.properties.items() if value != getattr(UDM, name))

    @property
    def note(self) -> str:
        """The description, or the error."""
        return f"error: {self.error}" if self.error else self.description


class Catalog(Displayed, Sequence[Entry]):
    """The modules of a repository: a sequence of `Entry`, ordered by origin and name."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Catalog: ...
    def __getitem__(self, index: int | slice) -> Entry | Catalog:
        return Catalog(self._entries[index]) if isinstance(index, slice) else self._entries[index]

    def __repr__(self) -> str:
        names = max((len(entry.call) for entry in self if len(entry.call) <= _NAME_WIDTH), default=0)
        types = max((len(entry.signature) for entry in self), default=0)
        lines = [f"{len(self)} module{'' if len(self) == 1 else 's'}"]
        for origin, entries in groupby(self, key=lambda entry: entry.origin):
            lines += ["", origin]
            for entry in entries:
                own_line, name = ([f"  {entry.call}"], "") if len(entry.call) > names else ([], entry.call)
                lines += [*own_line, f"  {name:{names}}  {entry.kind:3}  {entry.signature:{types}}  {entry.words}".rstrip()]
                lines += [f"      {line}" for line in entry.note.splitlines()]
        return "\n".join(lines)

    def _picture(self) -> ModuleKinds:
        from streamdsl.pictures.module_kinds import ModuleKinds

        return ModuleKinds({entry.kind for entry in self})

    def _below(self) -> str:
        return table(_TITLES, map(_html_cells, self))

    def to_pandas(self) -> pd.DataFrame:
        """Return a frame with a row per module and a column per property."""
        import pandas as pd

        plain = ("name", "kind", "signature", "parameters", "description", "origin", "path", "error")
        rows = [{name: getattr(entry, name) for name in plain} | dict(entry.properties) for entry in self]
        return pd.DataFrame(rows, columns=[*plain[:4], *PROPERTIES, *plain[4:]])


def entry_of(name: str, module: Any, origin: str, path: str) -> Entry:
    """Return the entry of a module.

    >>> from streamdsl.udm.builtin import TimeWeightedAvg
    >>> entry = entry_of("load", TimeWeightedAvg, "streamdsl", "streamdsl.udm.builtin:TimeWeightedAvg")
    >>> entry.kind, entry.signature, entry.words
    ('uda', 'Any -> Any', 'time-sensitive, ignores-ends-beyond-window')
    """
    kind = kind_of(module)
    properties = {} if kind == "udf" else {name: getattr(module, name) for name in PROPERTIES}
    return Entry(
        name,
        origin,
        path,
        kind=kind,
        signature=signature(module),
        parameters=parameters(module),
        properties={name: value for name, value in properties.items() if not isinstance(value, property)},
        description=inspect.cleandoc(module.__doc__ or "").partition("\n")[0],
    )


def kind_of(module: object) -> str:
    """Return the kind of a module, class or instance: `"uda"`, `"udo"`, `"udso"` or `"udf"`; "" if it is not a module."""
    if isinstance(module, Udf):
        return "udf"
    cls = module if isinstance(module, type) else type(module)
    return next((kind for kind, base in _KINDS.items() if issubclass(cls, base)), "")


def _word(name: str, value: object) -> str:
    if isinstance(value, bool):
        word = name.replace("_", "-")
        return word if value else f"not {word}"
    fields = ", ".join(value) if isinstance(value, Iterable) else value
    return f"{name.replace('_', ' ')} {fields or 'nothing'}"


def _html_cells(entry: Entry) -> list[str]:
    note = escape(entry.note).replace("\n", "<br>")
    texts = [*map(escape, (entry.name, entry.kind, entry.signature, entry.parameters, entry.words))]
    return [*texts, f"<b>{note}</b>" if entry.error else note, f"{escape(entry.origin)}<br>{escape(entry.path)}"]
