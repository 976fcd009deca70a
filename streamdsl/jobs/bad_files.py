"""Files that cannot be taken: each is named, and blocks nothing once it is mended or gone; a job may be asked to pass them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamdsl.errors import CheckpointError, FieldNotFound, InputError, QueryError, StreamDslError
from streamdsl.jobs.inputs import File, Input
from streamdsl.jobs.job import Job
from streamdsl.jobs.ledger import Ledger
from streamdsl.jobs.progress import Line


@contextmanager
def passing(job: Job, file: File, ledger: Ledger, line: Line) -> Iterator[None]:
    """Pass a file that cannot be taken, write it down and name it, if that was asked for."""
    try:
        yield
    except InputError as error:
        if not file.path.exists():  # removed since it was found, as if it had never come
            return
        if job.bad_files != "skip":
            raise
        ledger.refuse(file, str(error))
        line.say(f"passed: {error}")


@contextmanager
def blamed(file: File, *more: type[Exception]) -> Iterator[None]:
    """Raise what is wrong with a file's rows as an `InputError` that names it; not what is wrong with the query."""
    errors: tuple[type[Exception], ...] = (StreamDslError, *more)
    try:
        yield
    except (InputError, CheckpointError, MemoryError):
        raise
    except errors as error:
        if isinstance(error, QueryError) and not isinstance(error, FieldNotFound):
            raise
        raise blame(f"the file {file.path}", error) from error


def blame(what: str, error: Exception) -> InputError:
    """Return what is wrong with a file, or what came of it, as an error that says what can be done."""
    text, ways = (
        f"{type(error).__name__}: {error}",
        ["mend it, or remove it", "--bad-files skip passes such files, and names them"],
    )
    if isinstance(error, StreamDslError):
        text = without_hint(error)
        ways[:0] = [error.hint] if error.hint else []
    return InputError(f"{what} cannot be taken: {text}", hint="; ".join(ways))


def without_hint(error: StreamDslError) -> str:
    """Return what an error says, without its hint."""
    return str(error).removesuffix(f"\nHint: {error.hint}")


def check(given: Input, file: File) -> None:
    """Read a file to its end. Raises `InputError` for one that cannot be read, or changes meanwhile."""
    with blamed(file, Exception), file.unchanged():
        for _ in given.read([file]).pieces():
            pass
