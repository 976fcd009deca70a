"""Every rule of the optimizer has a file, a law, an example and cases where it must not fire; what is missing is named."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import streamdsl.rewrite
from streamdsl.plan.node import Node
from streamdsl.rewrite import RULES, Rule, RuleContext
from tests.laws.test_rewrites import LAWS
from tests.unit.rewrite.cases import FIRES, MUST_NOT_FIRE

FOLDER = Path(streamdsl.rewrite.__file__).parent


def missing(rule: Rule) -> list[str]:
    """Return what a rule lacks."""
    doc, name = inspect.getdoc(rule) or "", rule.__name__
    there = {
        f"a file of its own, {name}.py": Path(inspect.getfile(rule)).stem == name,
        "a law in its docstring": bool(re.search(r"^Law: `.+ == .+`", doc, re.MULTILINE)),
        "an example in its docstring": "Before and after:" in doc and ">>>" in _section(doc, "Before and after:"),
        "a case where it must not fire in its docstring": ">>>" in _section(doc, "Must not fire:"),
        "random queries in tests/laws/test_rewrites.py": name in LAWS,
        "cases in tests/unit/rewrite/cases.py": bool(FIRES.get(name)),
        "cases where it must not fire in tests/unit/rewrite/cases.py": bool(MUST_NOT_FIRE.get(name)),
    }
    return [f"{name} lacks {what}" for what, found in there.items() if not found]


def _section(doc: str, title: str) -> str:
    """Return the text under a title, to the next one."""
    found = re.search(rf"^{title}(.*?)(?=^[A-Z][a-z ]+:|\Z)", doc, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("rule", RULES, ids=[rule.__name__ for rule in RULES])
def test_rule_has_a_law_an_example_and_a_case_where_it_must_not_fire(rule: Rule) -> None:
    assert missing(rule) == []


def test_what_a_rule_lacks_is_named() -> None:
    def bare(node: Node, setting: RuleContext) -> Node | None:
        """Law: none. Must not fire: everywhere."""

    assert missing(bare) == [
        "bare lacks a file of its own, bare.py",
        "bare lacks a law in its docstring",
        "bare lacks an example in its docstring",
        "bare lacks a case where it must not fire in its docstring",
        "bare lacks random queries in tests/laws/test_rewrites.py",
        "bare lacks cases in tests/unit/rewrite/cases.py",
        "bare lacks cases where it must not fire in tests/unit/rewrite/cases.py",
    ]


def test_every_rule_in_the_folder_is_listed_once() -> None:
    written = {
        name
        for path in FOLDER.glob("*.py")
        for name in re.findall(r"^def (\w+)\(node: Node, setting: RuleContext\) -> Node \| None:", path.read_text(), re.MULTILINE)
    }
    assert written == {rule.__name__ for rule in RULES}
    assert len(written) == len(RULES)


def test_cases_are_of_rules_that_there_are() -> None:
    names = {rule.__name__ for rule in RULES}
    assert LAWS.keys() == FIRES.keys() == MUST_NOT_FIRE.keys() == names
