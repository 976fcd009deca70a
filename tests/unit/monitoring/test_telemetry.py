"""What OpenTelemetry's own SDK gets of a job, and that a job without it needs nothing of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from streamdsl.connect import calling
from streamdsl.monitoring.metrics import METRICS
from tests.unit.monitoring.test_metrics import GIVEN, Gives, counts

SECRET = "s3cret"


@pytest.fixture(scope="module")
def told() -> tuple[InMemoryMetricReader, InMemorySpanExporter]:
    """Set the SDK up, which can be done once in a process."""
    reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
    metrics.set_meter_provider(MeterProvider([reader]))
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    return reader, spans


def points(reader: InMemoryMetricReader) -> dict[tuple[str, ...], Any]:
    """Return the points by name and attributes' values, the job's last."""
    data = reader.get_metrics_data()
    found = {}
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    labels = dict(point.attributes or {})
                    job = labels.pop("job")
                    found[metric.name, *map(str, labels.values()), str(job)] = point
    return found


def test_the_sdk_gets_figures_and_a_span_for_each_micro_batch(told: Any, tmp_path: Any) -> None:
    reader, spans = told
    seen: list[dict[tuple[str, ...], Any]] = []
    inside: list[Any] = []

    class Looking(Gives):
        def poll(self, timeout: float) -> Any:
            if self.at == len(self.batches):
                seen.append(points(reader))
            return super().poll(timeout)

    source, job = Looking(GIVEN), str(tmp_path)
    source.let_go.set()
    sink = calling(lambda events: inside.append(trace.get_current_span().get_span_context().span_id))
    counts.serve(source, sink, metrics="otel", every=1, checkpoint=tmp_path)
    found = seen[0]
    assert found["streamdsl.events_in", "trips", job].value == 27
    assert found["streamdsl.late_events", "trips", job].value == 1
    assert found["streamdsl.micro_batches", job].value == 3
    assert found["streamdsl.state_bytes", "window_aggregate_1", job].value > 100
    assert found["streamdsl.micro_batch", job].count == 3
    ended = spans.get_finished_spans()
    assert [span.name for span in ended] == ["micro_batch"] * 4, "three, and that of the end"
    assert [span.attributes["streamdsl.micro_batch"] for span in ended] == [0, 1, 2, 3]
    assert [span.attributes["streamdsl.rows_in"] for span in ended] == [12, 16, 1, 0]
    assert [span.context.span_id for span in ended] == inside, "sinks write inside of the span"
    after = points(reader)
    assert not [name for name in after if name[0] == "streamdsl.events_in"], "a job that has ended is told of no more"


def test_a_span_says_that_its_micro_batch_failed(told: Any) -> None:
    _, spans = told
    spans.clear()

    def fail(events: Any) -> None:
        raise OSError(f"no route to https://me:{SECRET}@db")

    with pytest.raises(OSError, match=r"\*\*\*@db"):
        counts.serve(Gives(GIVEN), calling(fail), metrics="otel", every=1)
    (span,) = spans.get_finished_spans()
    assert not span.status.is_ok
    assert SECRET not in f"{span.to_json()}"


def test_names_have_no_unit_in_them() -> None:
    from streamdsl.monitoring.telemetry import _name

    names = [_name(metric) for metric in METRICS]
    assert len(set(names)) == len(METRICS)
    assert not [name for name in names if name.endswith(("_seconds", "_total"))]


ALONE = """
import sys
import streamdsl as sd
from streamdsl.connect import calling, iterable
query = sd.source("trips").where(lambda e: e > 0)
assert query.serve(iterable([sd.point("a", 3, 7)]), calling(id)).rows_in == 1
print([name for name in ("opentelemetry", "prometheus_client") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "[]"),
        (
            "sys.modules['opentelemetry'] = sys.modules['prometheus_client'] = None\n"
            "for metrics in ('otel', '127.0.0.1:0'):\n"
            "    try:\n"
            "        query.serve(iterable([]), calling(id), metrics=metrics)\n"
            "    except sd.errors.QueryError as error:\n"
            "        print(error.hint)",
            "[]\npip install 'streamdsl[otel]'\npip install 'streamdsl[metrics]'",
        ),
    ],
)
def test_nothing_is_imported_that_was_not_asked_for(more: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", ALONE + more], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == (said, 0), done.stderr
