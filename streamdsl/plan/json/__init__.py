"""Plans as JSON text and back: one mechanism for all values of a plan, field by field, each type by its name.

A plan is a list of parts (operators and expressions), each over earlier ones, so that what is shared stays shared. Nothing is
unpickled or imported: a name in the text stands for one of the types of a plan (`named_types.py`), for a module of the repository
(`sd.udm`), or for a class that the reader gives.
"""

from streamdsl.plan.json.named_types import TYPES
from streamdsl.plan.json.text import FORMAT, VERSION, from_json, to_json

__all__ = ["FORMAT", "TYPES", "VERSION", "from_json", "to_json"]
