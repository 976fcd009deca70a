"""Without an optional package: the error says what needs it and how to install it, wherever it is first needed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

import streamdsl as sd
from streamdsl.connect import KafkaTopic, kafka_topic
from streamdsl.monitoring import Endpoint
from streamdsl.monitoring.telemetry import Telemetry

NUMBERS = sd.from_rows([(1, 5, 7)])
NEEDED: list[tuple[str, str, Callable[[], object]]] = [
    ("pyspark", "spark", lambda: NUMBERS.run(engine="spark")),
    ("pyarrow", "spark", lambda: NUMBERS.run(engine="spark")),
    ("pyspark", "spark", lambda: NUMBERS.explain(engine="spark")),
    ("pyarrow", "spark", lambda: NUMBERS.on_spark(None)),
    ("pyarrow", "arrow", NUMBERS.to_arrow),
    ("pyarrow", "arrow", lambda: sd.from_parquet("rows.parquet")),
    ("polars", "polars", NUMBERS.to_polars),
    ("confluent_kafka", "kafka", lambda: kafka_topic("readings", "localhost:9092")),
    ("confluent_kafka", "kafka", lambda: KafkaTopic("alarms", "localhost:9092")),
    ("prometheus_client", "metrics", lambda: Endpoint("127.0.0.1:0")),
    ("opentelemetry", "otel", lambda: Telemetry("a job")),
]


@pytest.mark.parametrize(("package", "extra", "use"), NEEDED)
def test_a_package_that_is_not_installed_is_named_with_its_extra(
    package: str, extra: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"need {package}, which is not installed\nHint: pip install '{re.escape(f'streamdsl[{extra}]')}'"
    with pytest.raises(sd.errors.QueryError, match=message):
        use()
