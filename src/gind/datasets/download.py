"""Where the files of a dataset are: in the user's directory, else in our cache, else downloaded into it."""

import http.client
import logging
import os
import pathlib
import shutil
import tempfile
import urllib.request
import zipfile
from typing import IO

import filelock

from gind.cache import cache_directory
from gind.datasets.check import checksums, sha256
from gind.datasets.dataset import DataError
from gind.datasets.entry import Entry, RawFile
from gind.datasets.table import missing
from gind.files import write_atomically

__all__ = ["locate"]

log = logging.getLogger(__name__)

_TIMEOUT = 60.0


# of these the known checksums are of copies: with other line ends (TU), or arrays written anew
_COPIES = frozenset({"tu", "benchmark"})


def locate(entry: Entry, root: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """The directory that holds all files of `entry`: `root` (default: GIND_DATA), or the cache; `root` is only read."""
    local = root if root is not None else os.environ.get("GIND_DATA") or None
    if local is not None:
        local = pathlib.Path(local).expanduser()
        if not local.is_dir():
            raise DataError(f"The data directory {local} is not a directory. Correct `--data DIR` or GIND_DATA.")
        if not missing(entry, local):
            return local
    cache = cache_directory("datasets")
    if not missing(entry, cache):
        return cache
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # whoever comes second waits, and finds the files
        with filelock.FileLock(cache / f".{entry.name}.lock"):
            _download(entry, cache)
    except (OSError, http.client.HTTPException, zipfile.BadZipFile, LookupError) as error:
        # OSError: urllib's refusals, timeouts and TLS errors all are; so is a cache that cannot be written
        raise DataError(_refusal(entry, local, cache, error)) from error
    return cache


def _download(entry: Entry, cache: pathlib.Path) -> None:
    absent = set(missing(entry, cache))
    files = [file for file in entry.files if file.path in absent]
    for file in files:
        if not file.url:
            raise LookupError(f"{file.path} has no public address")
        if not file.url.endswith(".zip"):
            with _open(file.url) as source:
                _keep(source, file, entry, cache)
    for url in sorted({file.url for file in files if file.url.endswith(".zip")}):
        with _open(url) as source, tempfile.TemporaryFile(prefix="gind-") as archive:
            _copy(source, archive)
            _unpack(archive, [file for file in files if file.url == url], entry, cache)


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    """All of it: where a connection ends early, what is left to come is not 0, and nobody else tells."""
    shutil.copyfileobj(source, target)
    if left := getattr(source, "length", 0):
        raise http.client.IncompleteRead(b"", left)


def _open(url: str) -> IO[bytes]:
    log.info("downloading %s", url)
    response: IO[bytes] = urllib.request.urlopen(url, timeout=_TIMEOUT)
    return response


def _unpack(archive: IO[bytes], files: list[RawFile], entry: Entry, cache: pathlib.Path) -> None:
    with zipfile.ZipFile(archive) as content:
        # by their last names only: a name in an archive must not choose where it is written
        members = {member.rpartition("/")[2]: member for member in content.namelist()}
        for file in files:
            name = file.path.rpartition("/")[2]
            if name not in members:
                raise LookupError(f"{file.url.rpartition('/')[2]} does not hold {name}")
            with content.open(members[name]) as source:
                _keep(source, file, entry, cache)


def _keep(source: IO[bytes], file: RawFile, entry: Entry, cache: pathlib.Path) -> None:
    """All of `source` in the cache, if it is the published file; or nothing: half a file would be taken for a whole."""
    place = cache / file.path
    place.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(place) as part:
        with part.open("wb") as target:
            _copy(source, target)
        expected = None if entry.source in _COPIES else checksums().get(file.path)
        if expected is not None and (got := sha256(part)) != expected:
            raise DataError(
                f"{entry.name}: {file.url} gave a file of SHA-256 {got}, expected {expected}. It was not kept: a proxy "
                "may have answered with a page of its own, or the file has changed at its source. Try again later, or "
                f"put your own at DIR/{file.path} and pass `--data DIR` or set GIND_DATA."
            )


def _refusal(entry: Entry, local: pathlib.Path | None, cache: pathlib.Path, error: Exception) -> str:
    absent = missing(entry, local or cache)
    listed = ", ".join(absent[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
    where = f"{local}" if local else f"{cache} (no `--data DIR` or GIND_DATA is set)"
    return (
        f"{entry.name}: {len(absent)} of {len(entry.files)} files are not under {where}: {listed}; and downloading "
        f"failed ({type(error).__name__}: {error}). Put them under a directory DIR and pass `--data DIR` or "
        "set GIND_DATA."
    )
