"""What a function's bytecode may do for a trace of it to be the whole truth. An opcode that is not listed makes it opaque.

The names cover Python 3.11 to 3.14. Left out on purpose: jumps, `is`, `in`, `not`, text formatting, unpacking, what changes an
object in place, what throws a value away, and everything that later versions may bring.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Final

_OPCODES: Final = """
    CACHE RESUME NOP EXTENDED_ARG COPY_FREE_VARS PUSH_NULL PRECALL CALL CALL_KW KW_NAMES COPY SWAP
    LOAD_CONST LOAD_SMALL_INT LOAD_GLOBAL LOAD_DEREF LOAD_ATTR LOAD_METHOD
    LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST
    BINARY_OP BINARY_SUBSCR BUILD_SLICE BINARY_SLICE COMPARE_OP UNARY_NEGATIVE UNARY_POSITIVE UNARY_INVERT CALL_INTRINSIC_1
    BUILD_TUPLE BUILD_MAP BUILD_CONST_KEY_MAP MAP_ADD RETURN_VALUE RETURN_CONST
"""
_PLAIN: Final = frozenset(_OPCODES.split())
_NESTING: Final = frozenset({"MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "LOAD_CLOSURE"})


@lru_cache(maxsize=1024)
def is_traceable(code: CodeType, nesting: bool = False) -> bool:
    """Say whether all that the code does shows in a trace; `nesting` allows lambdas inside, which capture none of its variables.

    >>> is_traceable((lambda e: e.x + 1).__code__), is_traceable((lambda e: e.x is None).__code__)
    (True, False)
    """
    if nesting and code.co_cellvars:
        return False
    return all(_is_harmless(instruction, nesting) for instruction in dis.get_instructions(code))


def _is_harmless(instruction: dis.Instruction, nesting: bool) -> bool:
    name, shown = instruction.opname, instruction.argrepr
    if name in _NESTING:
        return nesting
    if name == "BINARY_OP":
        return not shown.endswith("=")
    if name == "CALL_INTRINSIC_1":
        return shown == "INTRINSIC_UNARY_POSITIVE"
    if name in ("LOAD_ATTR", "LOAD_METHOD"):
        return not is_private(str(instruction.argval))
    return name in _PLAIN


def is_private(name: str) -> bool:
    """Say whether an attribute may be one that proxies have for themselves; `_0`, `_1`, ... are the fields of tuples.

    >>> is_private("_node"), is_private("_0"), is_private("price")
    (True, False, False)
    """
    return name.startswith("_") and not name[1:].isdigit()


@lru_cache(maxsize=1024)
def remainders(code: CodeType) -> int:
    """Return how often the code applies `%`."""
    return sum(i.opname == "BINARY_OP" and i.argrepr == "%" for i in dis.get_instructions(code))


def global_names(code: CodeType) -> frozenset[str]:
    """Return the names that the code itself, not the functions inside, reads as globals.

    >>> sorted(global_names((lambda e: abs(e.x) + LIMIT).__code__))
    ['LIMIT', 'abs']
    """
    return frozenset(str(i.argval) for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")


def attribute_names(code: CodeType) -> set[str]:
    """Return the names that the code, and that of all functions inside, reads as attributes.

    >>> sorted(attribute_names((lambda e: max(x.a for x in e.b) + c).__code__))
    ['a', 'b']
    """
    instructions = (each for part in tree(code) for each in dis.get_instructions(part))
    return {str(each.argval) for each in instructions if each.opname in ("LOAD_ATTR", "LOAD_METHOD")}


def tree(code: CodeType) -> Iterator[CodeType]:
    """Yield the code and that of all functions inside."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from tree(inner)


def writes_names(code: CodeType) -> bool:
    """Say whether the code assigns global names, or variables of a function around it, or reaches for them by `globals()`."""
    outer = set(code.co_freevars)
    return any("globals" in part.co_names or any(_writes(i, outer) for i in dis.get_instructions(part)) for part in tree(code))


def _writes(instruction: dis.Instruction, outer: set[str]) -> bool:
    if instruction.opname in ("STORE_DEREF", "DELETE_DEREF"):
        return instruction.argval in outer
    return instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
