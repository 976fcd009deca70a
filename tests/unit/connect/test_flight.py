"""The source of Arrow Flight, with a real server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import pyarrow as pa
import pytest
from pyarrow import flight

import streamdsl as sd
from streamdsl.connect import Batch, calling, flight_stream
from streamdsl.errors import InputError, QueryError
from streamdsl.testing import check_source

ROWS: Final = [{"le": n, "re": n + 3, "zone": "AB"[n % 2], "fare": n / 2} for n in range(25)]


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Gives rows for each ticket, in batches of ten, and a flight of two tickets."""

    def do_get(self, context: Any, ticket: Any) -> Any:
        if ticket.ticket == b"none":
            raise flight.FlightUnavailableError("no such rows")
        table = pa.Table.from_pylist(ROWS)
        return flight.GeneratorStream(table.schema, iter(table.to_batches(10)))

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        assert descriptor.path == [b"trips", b"2026"]
        schema = pa.Table.from_pylist(ROWS).schema
        return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(name, []) for name in (b"a", b"b")], -1, -1)


@contextmanager
def running() -> Iterator[str]:
    with Server("grpc://127.0.0.1:0") as server:
        yield f"grpc://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def location() -> Iterator[str]:
    with running() as location:
        yield location


@pytest.mark.parametrize(("what", "records"), [(b"a", 25), ("trips/2026", 50)])
def test_it_gives_the_same_from_each_position(what: bytes | str, records: int, location: str) -> None:
    report = check_source(lambda: flight_stream(location, what), patience=1)
    assert (report.records, report.batches) == (records, 3 * records // 25)


def test_a_flight_is_the_input_of_a_job(location: str) -> None:
    found: list[Any] = []
    query = sd.source("trips", unit="tick").where(lambda e: e.fare > 11)
    assert query.serve(flight_stream(location, b"a"), calling(found.extend)).end == "ended"
    assert [event.payload.fare for event in found if isinstance(event, sd.Insert)] == [11.5, 12.0]


def test_what_the_server_says_is_told(location: str) -> None:
    with closing(flight_stream(location, b"none").open(None)) as reader, pytest.raises(InputError, match="no such rows"):
        reader.poll(5)
    source = flight_stream(location, b"a")
    with closing(source.open(7)) as reader, pytest.raises(InputError, match="there are 3 batches, and 7 had been read"):
        reader.poll(5)
    with pytest.raises(QueryError, match="7 is no ticket and no path"):
        flight_stream(location, 7)  # type: ignore[arg-type]


def test_a_reader_that_is_closed_lets_its_thread_end(location: str) -> None:
    reader = flight_stream(location, "trips/2026").open(None)
    assert isinstance(reader.poll(5), Batch)
    reader.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "streamdsl-flight"]
