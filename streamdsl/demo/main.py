"""The demo from end to end."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamdsl.demo.data import Data, load
from streamdsl.demo.flight_files import FEBRUARY, NoDataError, Period, carrier_names
from streamdsl.demo.local_run import Answer, play
from streamdsl.demo.queries import QUESTIONS, Question
from streamdsl.demo.replay import FILES, REPLAYED, replay, replayed
from streamdsl.demo.report import comparison, describe, introduce, print_lines
from streamdsl.demo.spark_run import Ask, ask_spark, difference, why_no_spark
from streamdsl.demo.storm_picture import storm
from streamdsl.monitoring.progress_meter import ProgressMeter
from streamdsl.monitoring.terminal_line import TerminalLine


def demo(
    period: Period = FEBRUARY,
    folder: Path = Path("demo-results"),
    spark: bool = True,
    streamed: Sequence[Question] = REPLAYED,
) -> int:
    """Run the demo and return its exit status: 1 when Spark's answers differ or nothing was corrected, 2 when it cannot run.

    Spark answers all questions over the whole history, and those in `streamed` as streams too.
    """
    began = time.perf_counter()
    try:
        names, data = carrier_names(), load(period)
        folder.mkdir(parents=True, exist_ok=True)
    except (NoDataError, OSError) as error:
        hint = "" if isinstance(error, NoDataError) else "\nHint: --out is a folder that is there, or can be made"
        print(f"streamdsl demo: {error}{hint}", file=sys.stderr)
        return 2
    print_lines(introduce(data))
    answers = {question.name: _answer(question, data, folder, names) for question in QUESTIONS}
    picture = folder / "storm.svg"
    picture.write_text(storm(answers["aloft"].cht, names, answers["grounded"].cht), encoding="utf-8")
    agreed = _on_spark(answers, data, folder / "replay", streamed) if spark else True
    print_lines(
        ["", f"Results as CSV and Parquet in {folder}/, the picture is {picture}; {time.perf_counter() - began:.0f} s in all."]
    )
    return 0 if agreed and corrected(answers) else 1


def _answer(question: Question, data: Data, folder: Path, names: Mapping[str, str]) -> Answer:
    with ProgressMeter(f"({question.letter}) {question.title}") as meter:
        answer = play(question, data, meter.show)
    print_lines(describe(answer, names))
    frame = answer.cht.to_pandas()
    frame.to_csv(folder / f"{question.name}.csv", index=False)
    if importlib.util.find_spec("pyarrow") is not None:
        frame.to_parquet(folder / f"{question.name}.parquet", index=False)
    return answer


def corrected(answers: Mapping[str, Answer]) -> bool:
    """Say whether each query corrected something; print which did not."""
    silent = [answer.question.letter for answer in answers.values() if not answer.corrections.retractions]
    if silent:
        print_lines([f"FAILED: nothing was corrected in {', '.join(silent)}, so the run shows nothing about corrections."])
    return not silent


def _on_spark(answers: Mapping[str, Answer], data: Data, folder: Path, questions: Sequence[Question]) -> bool:
    missing = why_no_spark()
    if missing is not None:
        print_lines(["", f"The Spark half was left out: {missing}"])
        return True
    streamed = _streamed(answers, data, folder, questions)
    print_lines(["", "The same queries on Spark, over the whole history at once:"])
    return agree(answers, data) and streamed


def _streamed(answers: Mapping[str, Answer], data: Data, folder: Path, questions: Sequence[Question]) -> bool:
    """Say whether streams on Spark, killed half-way, give the same answers; print it for each."""
    letters = " and ".join(f"({question.letter})" for question in questions)
    print_lines(["", f"{letters} as streams on Spark, from {FILES} files each, the job killed in the middle and started again:"])
    line, began = TerminalLine(), time.perf_counter()
    line.show("streaming on Spark: running")
    replay(data, folder, questions)
    histories = {question.name: replayed(question, folder) for question in questions}
    line.clear()
    took = time.perf_counter() - began
    differences = {name: difference(answers[name].cht, history) for name, history in histories.items()}
    for name, differs in differences.items():
        print_lines(comparison(answers[name], differs, took / len(histories)))
    return not any(differences.values())


def agree(answers: Mapping[str, Answer], data: Data, ask: Ask = ask_spark) -> bool:
    """Say whether another engine gives the same answers; print it for each."""
    agreed = [_agrees(answer, data, ask) for answer in answers.values()]
    return all(agreed)


def _agrees(answer: Answer, data: Data, ask: Ask) -> bool:
    line = TerminalLine()
    line.show(f"({answer.question.letter}) on Spark: running")
    began = time.perf_counter()
    differs = difference(answer.cht, ask(answer.question, data))
    line.clear()
    print_lines(comparison(answer, differs, time.perf_counter() - began))
    return differs is None
