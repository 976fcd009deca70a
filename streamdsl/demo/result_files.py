"""The demo's results on disk: each answer as CSV and Parquet, and the picture."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from streamdsl.demo.local_run import Answer
from streamdsl.demo.storm_picture import CarrierCount, draw


def write_answer(folder: Path, answer: Answer) -> list[Path]:
    """Write an answer as CSV and, where pyarrow is installed, as Parquet; return the files."""
    frame, name = answer.cht.to_pandas(), answer.question.name
    files = [folder / f"{name}.csv"]
    frame.to_csv(files[0], index=False)
    if importlib.util.find_spec("pyarrow") is not None:
        files.append(folder / f"{name}.parquet")
        frame.to_parquet(files[1], index=False)
    return files


def write_picture(folder: Path, answers: Mapping[str, Answer], names: Mapping[str, str]) -> Path:
    """Write the picture of queries (a) and (e); return the file."""
    counts = (CarrierCount(row.le, row.re, row.payload.carrier, row.payload.aloft) for row in answers["aloft"].cht)
    grounded = [(row.le, row.re) for row in answers["grounded"].cht]
    file = folder / "storm.svg"
    file.write_text(draw(counts, names, grounded), encoding="utf-8")
    return file
