"""Plans as JSON text and back: each value of a plan is written field by field, with the name of its type.

The text lists the plan's operators and expressions, its *parts*; each refers to earlier ones by index, so shared parts stay
shared. For safety nothing is unpickled or imported: a name in the text can only be one of the types of a plan
(`named_types.py`), a module of the repository (`sd.udm`), or a class that the caller passes.
"""

from streamdsl.plan.json.named_types import TYPES
from streamdsl.plan.json.text import FORMAT, VERSION, from_json, to_json

__all__ = ["FORMAT", "TYPES", "VERSION", "from_json", "to_json"]
