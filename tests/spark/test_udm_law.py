"""The law that a module gives the same results on Spark, on a real session."""

from __future__ import annotations

from typing import Any

import pytest

from streamdsl.errors import UdmLawViolation
from streamdsl.testing import check_udm
from tests.unit.testing import stream_operators
from tests.unit.testing.modules import Spread, Through
from tests.unit.testing.sabotaged import AtHome


@pytest.mark.parametrize("module", [Spread, Through], ids=lambda module: module.__name__)
def test_good_modules_are_the_same_on_spark(module: Any, spark: Any) -> None:
    assert check_udm(module, spark=spark).held["same_on_spark"] >= 4


@pytest.mark.parametrize("module", [AtHome, stream_operators.AtHome], ids=["over windows", "in order"])
def test_a_module_that_depends_on_its_process_is_found(module: Any, spark: Any) -> None:
    check_udm(module)
    with pytest.raises(UdmLawViolation, match="AtHome breaks the law same_on_spark") as raised:
        check_udm(module, spark=spark)
    assert raised.value.law == "same_on_spark"
