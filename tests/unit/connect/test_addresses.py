"""Sources and sinks by address, those of this package and of another one that is installed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import streamdsl as sd
from streamdsl.connect import Batch, sink_at, source_at

MODULE = """
from streamdsl.connect import calling, iterable

def ticks(address, *, n=3):
    return iterable([(k, k + 1, address) for k in range(n)])

def printed(address):
    return calling(print)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with an entry point of each group."""
    (tmp_path / "ticking.py").write_text(MODULE)
    info = tmp_path / "ticking-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ticking\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[streamdsl.sources]\nticks = ticking:ticks\n[streamdsl.sinks]\nprinted = ticking:printed\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_an_installed_package_brings_a_source_and_a_sink(capsys: pytest.CaptureFixture[str]) -> None:
    polled = source_at("ticks://here", n=2).open(None).poll(0)
    assert isinstance(polled, Batch)
    assert polled.data == [(0, 1, "ticks://here"), (1, 2, "ticks://here")]
    sd.source("ticks").where(lambda e: e != "").serve(source_at("ticks://here", n=1), sink_at("printed://"))
    assert "ticks://here" in capsys.readouterr().out
    with pytest.raises(sd.errors.QueryError, match="the kinds are: csv, folder, jsonl, kafka, sqlite, stdin, ticks, ws, wss"):
        source_at("tocks://here")


def test_paths_are_known_by_their_suffix(tmp_path: Path) -> None:
    assert repr(source_at(str(tmp_path))).startswith("file_folder(")
    assert repr(source_at("a.jsonl.zst")) == "jsonl_file('a.jsonl.zst')"
    assert repr(source_at("s3://bucket/a.csv.gz")) == "csv_file('s3://bucket/a.csv.gz')"
    assert repr(source_at("gs://bucket/trips")) == "file_folder('gs://bucket/trips')"
    assert repr(source_at("a.jsonl.gz")) == "jsonl_file('a.jsonl.gz')"
    assert repr(source_at("wss://me:secret@host/trips")) == "websocket('wss://***@host/trips')"
    assert repr(source_at("stdin://")) == "stdin_jsonl()"
    assert repr(sink_at(f"parquet://{tmp_path}")).startswith("ParquetTable(")


def test_an_address_of_no_kind_is_refused_without_its_password() -> None:
    with pytest.raises(
        sd.errors.QueryError, match=r"no sink is known for 'mongo://\*\*\*@somewhere/db'; the kinds are: jsonl, kafka, parquet"
    ) as raised:
        sink_at("mongo://me:secret@somewhere/db")
    assert "secret" not in str(raised.value)


def test_an_address_says_settings(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"le": 1}\n{"le": 2}\n')
    polled = source_at(f"jsonl://{tmp_path / 'a.jsonl'}?at_once=1&follow=true").open(None).poll(0)
    assert isinstance(polled, Batch)
    assert polled.data == [{"le": 1}]
    polled = source_at(f"jsonl://{tmp_path / 'a.jsonl'}?at_once=1", at_once=2).open(None).poll(0)
    assert isinstance(polled, Batch)
    assert len(polled.data) == 2, "what is given by name counts"


def test_a_setting_that_a_kind_does_not_have_is_refused() -> None:
    with pytest.raises(
        sd.errors.QueryError, match=r"'jsonl' has no setting 'folow'; its settings are: start, end, follow, decode, at_once"
    ):
        source_at("jsonl://a?folow=true")
    with pytest.raises(sd.errors.QueryError, match=r"'parquet' has no setting 'evry'; its settings are: every"):
        sink_at("parquet://a?evry=1d")
    with pytest.raises(sd.errors.QueryError, match=r"has no setting 'n'; its settings are: start, end"):
        source_at("stdin://", n=3)
    with pytest.raises(sd.errors.QueryError, match="its settings are: decode, payload, start, end, slack"):
        source_at("kafka://host:9092/readings?slak=10s")


def test_tables_of_sqlite_have_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("a.db")) as connection:
        connection.execute("CREATE TABLE trips (number INTEGER, le INTEGER, fare INTEGER)")
        connection.execute("INSERT INTO trips VALUES (1, 3, 7), (2, 4, 8)")
        connection.commit()
    dear = sd.source("trips", unit="tick").where(lambda e: e.fare > 7)
    dear.serve(source_at("sqlite:///a.db?table=trips&by=number"), sink_at(f"sqlite:///{tmp_path}/b.db?table=dear"), once=True)
    with closing(sqlite3.connect("b.db")) as connection:
        assert connection.execute("SELECT le, fare FROM dear").fetchall() == [(4, 8)]
    with pytest.raises(sd.errors.QueryError, match="the address of a source of the kind 'sqlite' lacks table, by"):
        source_at("sqlite:///a.db")
