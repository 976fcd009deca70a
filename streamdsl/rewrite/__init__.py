"""The optimizer: rules that replace a part of a plan by an equivalent part that costs less (paper 001, I.A.5).

    denote(optimize(plan), inputs) == denote(plan, inputs)

`RULES` lists the rules, each in its own file with its law, an example before and after, and cases where it must not fire.
"""

from streamdsl.rewrite.choice import as_chosen
from streamdsl.rewrite.explain_rewriting import explain
from streamdsl.rewrite.input_projection import fields_read_of_sources, narrowed, project_inputs
from streamdsl.rewrite.optimizer import RULES, RewriteStep, Rewriting, optimize, rewriting
from streamdsl.rewrite.rule import Mode, Rule, RuleContext
from streamdsl.rewrite.share_equals import with_equal_parts

__all__ = [
    "RULES",
    "Mode",
    "RewriteStep",
    "Rewriting",
    "Rule",
    "RuleContext",
    "as_chosen",
    "explain",
    "fields_read_of_sources",
    "narrowed",
    "optimize",
    "project_inputs",
    "rewriting",
    "with_equal_parts",
]
