"""A job that is served is scraped over HTTP, and what is read is what went through."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parsed

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.connect import END, BadRecord, Batch, JsonlFile, OpenSource, calling, iterable
from streamdsl.connect.protocols import PartitionProgress
from streamdsl.errors import QueryError
from streamdsl.monitoring import Endpoint, Status
from streamdsl.monitoring.job_figures import JobFigures, MicroBatch
from streamdsl.monitoring.metrics import METRICS

trips = sd.source("trips", on_violation="drop")
counts = trips.tumbling_window(10).aggregate(n=sd.count())
MANY = [sd.point(n, n, {"fare": n}) for n in range(25)]
GIVEN: list[Any] = [
    MANY[:12],
    [sd.Cti(12), sd.point("late", 3, {"fare": 1}), *MANY[12:], sd.Retract(24, 24, 25, 24, {"fare": 24})],
    [sd.Cti(20)],
]


class Gives(OpenSource):
    """A source of batches that stays open until it is let go, with two partitions."""

    def __init__(self, batches: list[Any], bad: int = 0) -> None:
        self.batches, self.bad, self.at = batches, bad, 0
        self.let_go = threading.Event()
        self.waits = threading.Event()

    def open(self, position: Any) -> Gives:
        return self

    def partitions(self) -> dict[str, PartitionProgress]:
        return {"0": PartitionProgress(20, 3), "1": PartitionProgress(None, 4)}

    def poll(self, timeout: float) -> Any:
        if self.at < len(self.batches):
            self.at += 1
            letters = [BadRecord("x", "is no trip", "line 1")] * self.bad
            return Batch(self.batches[self.at - 1], self.at, letters)
        self.waits.set()
        return END if self.let_go.wait(min(timeout, 0.05)) else None


@contextmanager
def served(query: Any = counts, source: Any = None, **settings: Any) -> Iterator[tuple[Endpoint, Gives]]:
    """Serve a query in another thread, and let go of it at the end."""
    source = source or Gives(GIVEN)
    endpoint = Endpoint("127.0.0.1:0", patience="2s")
    failures: list[BaseException] = []

    def job() -> None:
        try:
            query.serve(source, settings.pop("sinks", calling(id)), metrics=endpoint, **{"every": 1, **settings})
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=job)
    thread.start()
    try:
        assert source.waits.wait(10)
        yield endpoint, source
    finally:
        source.let_go.set()
        thread.join(10)
        assert not failures
        assert not thread.is_alive()


def got(endpoint: Endpoint, path: str, accept: str = "text/plain") -> tuple[int, str]:
    asked = urllib.request.Request(endpoint.address + path, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def scraped(endpoint: Endpoint) -> dict[tuple[str, ...], float]:
    """Return the samples by name and labels' values, in order of the labels' names."""
    found: Any = parsed(got(endpoint, "/metrics")[1])
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in found
        for sample in family.samples
    }


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_figures_are_those_of_what_went_through(tmp_path: Path) -> None:
    found: list[Any] = []
    letters = JsonlFile(tmp_path / "letters.jsonl")
    with served(source=Gives(GIVEN, bad=2), sinks=calling(found.extend), dead_letters=letters) as (endpoint, _):
        figures = scraped(endpoint)
        status = Status.from_json(json.loads(got(endpoint, "/status.json")[1]))
    out = [event for event in found[: found.index(sd.Cti(20)) + 1] if not isinstance(event, sd.Cti)]
    expected = {
        ("streamdsl_events_in_total", "trips"): 27,
        ("streamdsl_retractions_in_total", "trips"): 1,
        ("streamdsl_late_events_total", "trips"): 1,
        ("streamdsl_bad_records_total", "trips"): 6,
        ("streamdsl_events_out_total", "speculative"): len(out),
        ("streamdsl_retractions_out_total", "speculative"): sum(isinstance(event, sd.Retract) for event in out),
        ("streamdsl_micro_batches_total",): 3,
        ("streamdsl_micro_batch_seconds_count",): 3,
        ("streamdsl_micro_batch_seconds_bucket", "+Inf"): 3,
        ("streamdsl_commit_seconds_count",): 3,
        ("streamdsl_checkpoint_seconds_count",): 3,
        ("streamdsl_cti_ticks", "source", "trips"): 20,
        ("streamdsl_cti_ticks", "output", "speculative"): 20,
        ("streamdsl_cti_lag", "source", "trips"): 4,
        ("streamdsl_partition_lag_records", "0", "trips"): 3,
        ("streamdsl_partition_lag_records", "1", "trips"): 4,
    }
    assert {name: figures.get(name) for name in expected} == expected
    assert figures["streamdsl_retractions_out_total", "speculative"] > 0
    assert figures["streamdsl_state_bytes", "window_aggregate_1"] > 100
    assert figures["streamdsl_windows_open", "window_aggregate_1"] == 1
    assert figures["streamdsl_checkpoint_bytes",] > 100
    assert figures["streamdsl_engine_seconds_total",] > 0
    assert 0 < figures["streamdsl_checkpoint_seconds_sum",] < figures["streamdsl_commit_seconds_sum",]
    assert figures["streamdsl_commit_seconds_sum",] <= figures["streamdsl_micro_batch_seconds_sum",]
    assert any(name[0] == "streamdsl_sink_seconds_total" and name[1].startswith("0 calling(") for name in figures)
    assert abs(figures["streamdsl_last_micro_batch_timestamp_seconds",] - time.time()) < 60
    assert status.job is not None
    assert (status.job.micro_batches, status.job.bad_records, status.job.positions) == (3, 6, {"trips": 3})
    assert set(status.job.batch_seconds) == {"p50", "p95", "p99"}
    assert (status.sources[0].events_in, status.sources[0].partition_lags) == (27, {"0": 3, "1": 4})
    assert status.state_bytes is not None


def test_every_metric_is_there_and_nothing_else() -> None:
    dated = sd.source("trips", unit="ms").tumbling_window("1s").aggregate(n=sd.count())
    rows = [*(sd.point(n, f"2026-01-01T00:00:0{n}", {"fare": n}) for n in range(5)), sd.Cti("2026-01-01T00:00:03")]
    known = {name for metric in METRICS for name in metric.samples}
    found: set[str] = set()
    for query, given in ((counts, GIVEN), (dated, [rows])):
        with served(query, Gives(given, bad=1), dead_letters=calling(id)) as (endpoint, _):
            found |= {name for name, *_ in scraped(endpoint)}
            openmetrics = got(endpoint, "/metrics", "application/openmetrics-text")[1]
            newest: list[Any] = list(parsed_openmetrics(openmetrics))  # type: ignore[no-untyped-call]
            assert {family.name for family in newest} >= {metric.name for metric in METRICS}
    assert {name for name in found if name.startswith("streamdsl_")} == known
    assert "process_resident_memory_bytes" in found


def test_dates_are_seconds_since_1970() -> None:
    query = sd.source("trips", unit="ms").where(lambda e: e.fare > 0)
    with served(query, Gives([[sd.point("a", "2026-01-01", {"fare": 1}), sd.Cti("2025-12-31T23:59:58.5")]])) as (endpoint, _):
        figures = scraped(endpoint)
    assert figures["streamdsl_cti_timestamp_seconds", "source", "trips"] == 1767225598.5
    assert figures["streamdsl_cti_lag", "source", "trips"] == 1.5


def test_health_says_how_the_job_is() -> None:
    with served() as (endpoint, source):
        eventually(lambda: got(endpoint, "/readyz") == (200, "ok\n"))
        assert got(endpoint, "/healthz") == (200, "ok\n")
        code, text = got(endpoint, "/")
        assert (code, text) == (404, "the paths are: /metrics, /healthz, /readyz, /status.json\n")
        source.poll = lambda timeout: time.sleep(3)  # type: ignore[method-assign]
        eventually(lambda: got(endpoint, "/readyz")[0] == 503)
        assert "has not asked its sources" in got(endpoint, "/readyz")[1]
        assert got(endpoint, "/healthz")[0] == 200
        del source.poll
        eventually(lambda: got(endpoint, "/readyz")[0] == 200)
    with pytest.raises(urllib.error.URLError):
        got(endpoint, "/healthz")


def test_a_job_is_ready_by_its_figures() -> None:
    now = 0.0
    figures = JobFigures(lambda: now)
    assert figures.why_not_ready(5) == "the job is opening"
    figures.turn("running")
    assert figures.why_not_ready(5) is None
    now = 6.0
    assert figures.why_not_ready(5) == "the job has not asked its sources for 6 seconds"
    figures.turn("running", due=0.0)
    assert figures.why_not_ready(5) == "a micro-batch has been due for 6 seconds"
    figures.turn("running", due=float("inf"))
    assert figures.why_not_ready(5) is None, "it ends after so many rows, whenever they come"
    figures.turn("draining")
    assert figures.why_not_ready(5) == "the job is draining"


def test_the_state_is_measured_for_a_small_part_of_the_time() -> None:
    now, asked = 0.0, list[bool]()

    def take(sizes: bool) -> Status:
        nonlocal now
        asked.append(sizes)
        now += 1.0 * sizes
        return Status(time=now)

    figures = JobFigures(lambda: now)
    for _ in range(38):
        figures.add(MicroBatch(number=0), figures.measured(take))
        now += 1.0
    assert asked.count(True) == 2


@pytest.mark.parametrize("address", ["9464", "nowhere", "127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:1/metrics", ":0"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(QueryError, match=r"Hint: metrics=\"127.0.0.1:9464\""):
        counts.serve(iterable(MANY), calling(id), metrics=address)


def test_a_port_that_is_taken_is_refused_before_anything_is_read() -> None:
    endpoint = Endpoint("127.0.0.1:0")
    with pytest.raises(QueryError, match=r"cannot be served at .*in use"):
        counts.serve(Gives([]), calling(id), metrics=endpoint.address.removeprefix("http://"))
    endpoint.close()
    for wrong in (3, [3], {"a": 1}):
        with pytest.raises(QueryError, match="metrics are not told to"):
            counts.serve(Gives([]), calling(id), metrics=wrong)  # type: ignore[arg-type]


def test_an_answer_waits_for_nobody() -> None:
    with served() as (endpoint, _):
        codes = list[int]()
        threads = [threading.Thread(target=lambda: codes.append(got(endpoint, "/metrics")[0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert codes == [200] * 8


def test_top_shows_the_figures_of_a_job_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as (endpoint, _):
        assert main(["top", endpoint.address.removeprefix("http://"), "--once", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["job"]["micro_batches"] == 3
    assert told["sources"][0]["partition_lags"] == {"0": 3, "1": 4}
