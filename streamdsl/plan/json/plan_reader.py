"""The decoder of plans: from JSON values to operators and expressions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from types import NoneType
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.expr.facade import invert
from streamdsl.plan.json.constants import CONSTANTS
from streamdsl.plan.json.named_types import ENUMS, MODULES, PLAIN_TYPES, TYPES
from streamdsl.plan.wellformed import misfits
from streamdsl.udm.repository import repository


@dataclass(slots=True)
class PlanReader:
    """The parts decoded so far, and the payload classes that the text may name."""

    classes: Mapping[str, type]
    parts: list[Any] = field(default_factory=list)

    def value(self, found: Any) -> Any:
        """Return the value that a JSON value stands for."""
        if isinstance(found, list):
            return tuple(map(self.value, found))
        if not isinstance(found, dict):
            return found
        if "type" in found:
            return self.object(found)
        special = next(iter(found), "")
        try:
            return self._special(special, found)
        except QueryError:
            raise
        except (TypeError, ValueError, KeyError, ArithmeticError) as error:
            raise self._wrong(f"{found!r} cannot be read: {error}") from None

    def object(self, found: Any) -> Any:
        """Return the operator, expression or other typed value that a JSON object stands for, with its fields checked."""
        if not isinstance(found, dict) or not isinstance(found.get("type"), str):
            raise self._wrong(f"{found!r} has no type")
        cls = TYPES.get(found["type"])
        if cls is None:
            raise self._wrong(
                f"there is no {found['type']!r}; there are: {', '.join(sorted(TYPES))}",
                hint="a later streamdsl may have written it",
            )
        values = {name: self.value(each) for name, each in found.items() if name != "type"}
        wrong = misfits(cls, values)
        if wrong:
            raise self._wrong(f"a {found['type']} does not fit: {wrong}")
        return cls(**values)

    def _special(self, special: str, found: dict[str, Any]) -> Any:
        held = found.get(special)
        if special == "$ref":
            if type(held) is not int or not 0 <= held < len(self.parts):
                raise self._wrong(f"{held!r} is no part before it")
            return self.parts[held]
        if special == "$float":
            return float(str(held))
        if special == "$enum":
            kind, name = held  # type: ignore[misc]
            return ENUMS[kind][name]
        if special == "$class":
            return self._class(held)
        if special == "$module":
            return self._made(MODULES[str(held)], found.get("settings", {}))
        if special == "$udm":
            return self._registered(str(held), found.get("parameters"))
        if special == "$function" and held == "~":
            return invert
        if special == "$item":
            return itemgetter(*held)  # type: ignore[misc]
        return CONSTANTS[special.removeprefix("$")][2](held)

    def _made(self, cls: type, settings: dict[str, Any]) -> Any:
        values = {name: self.value(each) for name, each in settings.items()}
        names = inspect.signature(cls).parameters
        made: Any = cls(**{name: values[name] for name in names})
        if vars(made) != values:
            raise self._wrong(f"{cls.__name__} has no settings {values!r}")
        return made

    def _registered(self, name: str, parameters: Any) -> Any:
        return repository.get(name, **{each: self.value(value) for each, value in (parameters or {}).items()})

    def _class(self, names: Any) -> Any:
        union: Any = None
        for name in names:
            found = self._one_class(name)
            union = found if union is None else union | found
        return union

    def _one_class(self, name: str) -> Any:
        module, _, short = name.partition(":")
        if module in ("builtins", "datetime", "decimal", "fractions") and short in (*PLAIN_TYPES, "NoneType"):
            return PLAIN_TYPES.get(short, NoneType)
        if name not in self.classes:
            raise self._wrong(
                f"it names the class {name}, which is not one of the given classes: {', '.join(self.classes) or '(none)'}",
                hint=f"classes are never imported; pass them: sd.composing.plan_from_json(text, classes=[{short}])",
            )
        return self.classes[name]

    def _wrong(self, what: str, hint: str | None = None) -> QueryError:
        return QueryError(f"part {len(self.parts)} of the plan cannot be read: {what}", hint=hint)
