"""Which law `check_udm` finds broken."""

from __future__ import annotations

from typing import Any

import pytest

from streamdsl.errors import UdmLawViolation
from streamdsl.testing import check_udm


def broken_law(module: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(UdmLawViolation) as raised:
        check_udm(module, *arguments, **options)
    return raised.value.law
