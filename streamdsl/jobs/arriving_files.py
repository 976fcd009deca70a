"""The files of a streaming job on Spark: each is linked once into a folder that Spark watches, by whatever path it is found."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Final

from streamdsl.engine.state.whole_files import write_whole
from streamdsl.errors import CheckpointError, InputError, QueryError
from streamdsl.io.formats import BY_SUFFIX
from streamdsl.io.partition_folders import check_same, partition_values
from streamdsl.jobs.bad_files import as_input_errors, check_readable, skipping_bad_files
from streamdsl.jobs.input_files import InputFile
from streamdsl.jobs.job import Job
from streamdsl.jobs.ledger import Ledger, LedgerEntry
from streamdsl.jobs.status_line import StatusLine

_ANEW: Final = "begin a new checkpoint, and a new output"


class ArrivingFiles:
    """Folders of links to the files of a job's inputs, which the ledger identifies by content and path as on the local engine.

    Spark identifies a file by its path alone, so it gets a path that never changes: in the checkpoint, by the file's number.
    Raises `CheckpointError` for a checkpoint that has been moved.
    """

    def __init__(self, job: Job, line: StatusLine) -> None:
        assert job.checkpoint is not None
        self._job, self._line = job, line
        self._folder = job.checkpoint / "arrivals"
        self._kinds = {name: given.format.name for name, given in job.inputs.items()}
        self._check(job.checkpoint)
        self._ledger = Ledger(self._folder)
        for name in job.inputs:
            self.folder(name).mkdir(parents=True, exist_ok=True)

    def folder(self, source: str) -> Path:
        """Return the folder that Spark watches for a source."""
        return (self._folder / "links" / source).resolve()

    def poll(self) -> None:
        """Link new files, after reading each: a file that cannot be read never reaches Spark.

        Raises `InputError` for such a file, and for one that has changed or has another format, unless the job skips bad files.
        """
        found = [file for given in self._job.inputs.values() for file in given.files()]
        for file in self._ledger.unprocessed(found):
            with skipping_bad_files(self._job, file, self._ledger, self._line):
                if (kind := self._kinds[file.source]) != BY_SUFFIX[file.path.suffix].name:
                    raise InputError(f"the file {file.path} is no {kind} as those before it", hint="put it into another folder")
                with as_input_errors(file):
                    self._check_columns(file)
                check_readable(self._job.inputs[file.source], file)
                self._ledger.take(len(self._ledger.taken), file)
        for number, entry in enumerate(self._ledger.taken):
            link = self._link(number, entry)
            if os.path.exists(entry.path) and not (link.is_symlink() and os.readlink(link) == entry.path):
                new = link.with_name(f".{link.name}")
                new.unlink(missing_ok=True)
                new.symlink_to(entry.path)
                os.replace(new, link)

    def _link(self, number: int, entry: LedgerEntry) -> Path:
        """Return the link to a file: below folders such as `month=01` as the file is, so that Spark's rows tell their columns."""
        link = self.folder(entry.source) / f"{number:010}{Path(entry.path).suffix}"
        if link.is_symlink():  # also of an earlier version, which knew no such folders
            return link
        folders = (part for name in entry.names[:1] for part in PurePath(name).parts[:-1] if "=" in part)
        link = self.folder(entry.source).joinpath(*folders, link.name)
        link.parent.mkdir(parents=True, exist_ok=True)
        return link

    def _check_columns(self, file: InputFile) -> None:
        """Raise `SchemaError` for a file that is not in such folders as those before it."""
        first = next((entry for entry in self._ledger.taken if entry.source == file.source and entry.names), file)
        before, now = (partition_values(PurePath(each.names[0])) for each in (first, file))
        check_same(file.path, now, first.path, before)

    def _check(self, checkpoint: Path) -> None:
        if (checkpoint / "local").exists():
            raise QueryError(
                f"the checkpoint {checkpoint} is that of a stream on the local engine", hint="go on with --engine local"
            )
        place, here = self._folder / "place", str(checkpoint.resolve())
        if not place.exists():
            if (checkpoint / "offsets").exists():
                raise CheckpointError(
                    f"the checkpoint {checkpoint} is of an earlier version, which let Spark look for files", hint=_ANEW
                )
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(place, here.encode())
        if (before := place.read_text()) != here:
            raise CheckpointError(
                f"the checkpoint {checkpoint} was at {before}, and Spark knows files by their addresses",
                hint=f"move or mount it there, or {_ANEW}",
            )
