"""`check`: is a set on disk what it should be? Files against checksums, contents against the table, known defects."""

import dataclasses
import functools
import hashlib
import os
import pathlib
from importlib import resources
from typing import Literal

from gind.datasets.entry import Entry
from gind.datasets.table import find, on_disk

__all__ = ["CheckReport", "CountCheck", "FileCheck", "check", "on_disk"]


@dataclasses.dataclass(frozen=True)
class FileCheck:
    """A file and what was found of it; "unknown": there, but we have no checksum of it."""

    path: str
    state: Literal["same", "differs", "missing", "unknown"]
    sha256: str | None = None


@dataclasses.dataclass(frozen=True)
class CountCheck:
    """A count that the table expects and what was measured."""

    name: str
    expected: int
    measured: int


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """What `check` found; counts are empty where files are missing or cannot be read."""

    name: str
    files: tuple[FileCheck, ...]
    counts: tuple[CountCheck, ...]
    defects: tuple[str, ...]
    problem: str | None = None
    """why the files cannot be read"""

    @property
    def complete(self) -> bool:
        """No file is missing."""
        return all(file.state != "missing" for file in self.files)

    @property
    def ok(self) -> bool:
        """All files are there and readable and no count is off; bytes may differ (line ends, another archive)."""
        readable = self.complete and self.problem is None
        return readable and all(count.expected == count.measured for count in self.counts)


def check(name: str, root: str | os.PathLike[str]) -> CheckReport:
    """The report on `name` under `root`; reads only, downloads nothing."""
    entry = find(name)
    files = tuple(_check_file(pathlib.Path(root), file.path) for file in entry.files)
    report = CheckReport(entry.name, files, (), entry.defects)
    if not report.complete:
        return report
    # imported here: to say what is on disk must not wait for torch
    from gind.datasets.dataset import DataError
    from gind.datasets.load import load
    from gind.datasets.statistics import statistics

    try:
        measured = statistics(load(name, root))
    except DataError as error:
        return dataclasses.replace(report, problem=str(error))
    counts = tuple(
        CountCheck(field, expected, getattr(measured, field))
        for field, expected in dataclasses.asdict(entry.counts).items()
    )
    return dataclasses.replace(report, counts=counts)


def refuse_strange_pickles(entry: Entry, root: str | os.PathLike[str]) -> None:
    """Planetoid's files are pickles, and a pickle can run code: only those that we know are opened."""
    from gind.datasets.dataset import DataError

    for file in entry.files:
        if not file.path.endswith(".npz") and _check_file(pathlib.Path(root), file.path).state != "same":
            raise DataError(
                f"{file.path} under {root} is not the published file (its checksum differs). It may be a pickle, which "
                "could run code, so it is not opened. Delete it and let it be downloaded again."
            )


@functools.cache
def checksums() -> dict[str, str]:
    """SHA-256 of each file that the counts of the table were measured on."""
    text = resources.files("gind.datasets").joinpath("checksums.txt").read_text()
    pairs = (line.split(maxsplit=1) for line in text.splitlines())
    return {path: digest for digest, path in pairs}


def _check_file(root: pathlib.Path, path: str) -> FileCheck:
    try:
        digest = sha256(root / path)
    except OSError:
        return FileCheck(path, "missing")
    known = checksums().get(path)
    if known is None:
        return FileCheck(path, "unknown", digest)
    return FileCheck(path, "same" if digest == known else "differs", digest)


def sha256(path: pathlib.Path) -> str:
    """The checksum of a file, as 64 digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
