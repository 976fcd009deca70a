"""Handling of files that cannot be read: an error names the file, or the job skips it and records the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamdsl.errors import CheckpointError, FieldNotFound, InputError, QueryError, StreamDslError, without_hint
from streamdsl.jobs.input_files import InputFile, JobInput
from streamdsl.jobs.job import Job
from streamdsl.jobs.ledger import Ledger
from streamdsl.jobs.status_line import StatusLine


@contextmanager
def skipping_bad_files(job: Job, file: InputFile, ledger: Ledger, line: StatusLine) -> Iterator[None]:
    """Skip a file that fails with `InputError`, record it and report it, if the job skips bad files; else raise."""
    try:
        yield
    except InputError as error:
        if not file.path.exists():  # it was removed after it was found: as if it had never arrived
            return
        if job.bad_files != "skip":
            raise
        ledger.refuse(file, str(error))
        line.say(f"passed: {error}")


@contextmanager
def as_input_errors(file: InputFile, *more: type[Exception]) -> Iterator[None]:
    """Raise errors about a file's rows as `InputError` with the file's name; errors of the query pass."""
    errors: tuple[type[Exception], ...] = (StreamDslError, *more)
    try:
        yield
    except (InputError, CheckpointError, MemoryError):
        raise
    except errors as error:
        if isinstance(error, QueryError) and not isinstance(error, FieldNotFound):
            raise
        raise input_error(f"the file {file.path}", error) from error


def input_error(what: str, error: Exception) -> InputError:
    """Return an `InputError` for a file, or for its output, whose hint lists the remedies."""
    text, ways = (
        f"{type(error).__name__}: {error}",
        ["mend it, or remove it", "--bad-files skip passes such files, and names them"],
    )
    if isinstance(error, StreamDslError):
        text = without_hint(error)
        ways[:0] = [error.hint] if error.hint else []
    return InputError(f"{what} cannot be taken: {text}", hint="; ".join(ways))


def check_readable(given: JobInput, file: InputFile) -> None:
    """Read a whole file. Raises `InputError` if it cannot be read, or changes meanwhile."""
    with as_input_errors(file, Exception), file.unchanged():
        for _ in given.read([file]).pieces():
            pass
