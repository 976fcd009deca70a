"""Sources and sinks by address, those of this package and of another one that is installed."""

from __future__ import annotations

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
    with pytest.raises(sd.errors.QueryError, match="the kinds are: csv, folder, jsonl, kafka, stdin, ticks, ws, wss"):
        source_at("tocks://here")


def test_paths_are_known_by_their_suffix(tmp_path: Path) -> None:
    assert repr(source_at(str(tmp_path))).startswith("file_folder(")
    assert repr(source_at("a.jsonl.zst")) == "jsonl_file('a.jsonl.zst')"
    assert repr(source_at("s3://bucket/a.csv.gz")) == "csv_file('s3://bucket/a.csv.gz')"
    assert repr(source_at("gs://bucket/trips")) == "file_folder('gs://bucket/trips')"
    assert repr(source_at("a.jsonl.gz")) == "jsonl_file('a.jsonl.gz')"
    assert repr(source_at("wss://me:secret@host/trips")) == "websocket('wss://host/trips')"
    assert repr(source_at("stdin://")) == "stdin_jsonl()"
    assert repr(sink_at(f"parquet://{tmp_path}")).startswith("ParquetTable(")


def test_an_address_of_no_kind_is_refused_without_its_password() -> None:
    with pytest.raises(
        sd.errors.QueryError, match="no sink is known for 'somewhere/db'; the kinds are: jsonl, kafka, parquet"
    ) as raised:
        sink_at("mongo://me:secret@somewhere/db")
    assert "secret" not in str(raised.value)
