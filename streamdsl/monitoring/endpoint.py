"""Where a job is watched over HTTP: metrics for Prometheus, health, and its status as JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from streamdsl.errors import QueryError
from streamdsl.extras import need
from streamdsl.monitoring.job_figures import JobFigures
from streamdsl.monitoring.metrics import METRICS
from streamdsl.temporal import to_duration

_EXAMPLE: Final = 'metrics="127.0.0.1:9464", or ":0" after the host for any port that is free'
_PATHS: Final = ("/metrics", "/healthz", "/readyz", "/status.json")


class Endpoint:
    """An address at which a job is watched while it runs: `/metrics`, `/healthz`, `/readyz` and `/status.json`.

    `serve(..., metrics="127.0.0.1:9464")` makes one; made before, it says which port it has got where 0 was asked for. A job is
    ready while its sources are open, unless it has not asked them, or a micro-batch has been due, for `patience`. It is
    closed with the job. Whoever reaches the address can read it: give one that only the machine itself reaches, unless the
    network is trusted. Raises `QueryError` for an address that is none or is taken, and without prometheus-client.

    >>> from streamdsl.monitoring import Endpoint
    >>> endpoint = Endpoint("127.0.0.1:0")
    >>> endpoint.address.startswith("http://127.0.0.1:")
    True
    >>> endpoint.close()
    """

    def __init__(self, address: str, patience: str | timedelta = "1m") -> None:
        need("prometheus_client", "metrics for Prometheus", "metrics")
        self.patience = to_duration(patience, "us") / 10**6
        self.figures = JobFigures()
        self._collected = _registry(self)
        try:
            self._server = _Server(_host_and_port(address), self)
        except (OSError, OverflowError) as error:
            raise QueryError(f"metrics cannot be served at {address}: {error}", hint=_EXAMPLE) from None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """The address, with the port that it has."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self, figures: JobFigures) -> None:
        """Answer with the figures of a job, in a thread of its own."""
        self.figures = figures
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="streamdsl-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no more, and free the port."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def answer(self, path: str, accepts: str) -> tuple[int, str, bytes]:
        """Return status, type and body of the answer to a path."""
        if path == "/metrics":
            return self._metrics(accepts)
        if path == "/status.json":
            status = self.figures.status
            return 200, "application/json", json.dumps(None if status is None else status.to_json(), default=str).encode()
        if path not in ("/healthz", "/readyz"):
            return 404, "text/plain; charset=utf-8", f"the paths are: {', '.join(_PATHS)}\n".encode()
        if path == "/readyz":
            why = self.figures.why_not_ready(self.patience)
        else:
            why = "the job is ended" if self.figures.phase == "ended" else None
        return 503 if why else 200, "text/plain; charset=utf-8", f"{why or 'ok'}\n".encode()

    def _metrics(self, accepts: str) -> tuple[int, str, bytes]:
        from prometheus_client.exposition import choose_encoder

        encode, kind = choose_encoder(accepts)
        return 200, kind, encode(self._collected)


def _host_and_port(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.path:
        raise QueryError(f"{address!r} does not say where metrics are served", hint=_EXAMPLE)
    return host, port


def _registry(endpoint: Endpoint) -> Any:
    """Return a registry of prometheus-client that has the job's metrics, and those of the process."""
    from prometheus_client import CollectorRegistry, ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Collector(endpoint))
    return registry


class _Collector:
    """Makes families of prometheus-client of the figures when they are asked for."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        figures = self._endpoint.figures
        with figures.lock:
            for metric in METRICS:
                if metric.histogram is not None:
                    durations = HistogramMetricFamily(metric.name, metric.meaning)
                    histogram = metric.histogram(figures)
                    durations.add_metric([], histogram.up_to(), histogram.total)
                    yield durations
                    continue
                family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
                found = family(metric.name, metric.meaning, labels=metric.labels)
                for labels, value in metric.read(figures):
                    found.add_metric(labels, value)
                yield found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, at: tuple[str, int], endpoint: Endpoint) -> None:
        if ":" in at[0]:
            import socket

            self.address_family = socket.AF_INET6
        self.endpoint = endpoint
        super().__init__(at, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10

    def do_GET(self) -> None:
        status, kind, body = self.server.endpoint.answer(urlsplit(self.path).path, self.headers.get("Accept", ""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""
