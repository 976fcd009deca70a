"""Files in pieces: of two rows, and of all at once."""

from __future__ import annotations

import pytest

from streamdsl.io import csv_files, files


@pytest.fixture(params=[2, 65_536])
def piece_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(files, "PIECE_ROWS", request.param)
    monkeypatch.setattr(csv_files, "PIECE_ROWS", request.param)
    return int(request.param)
