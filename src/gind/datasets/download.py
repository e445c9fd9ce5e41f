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

from gind.datasets.dataset import DataError
from gind.datasets.entry import Entry, RawFile
from gind.datasets.table import missing

__all__ = ["cache_directory", "fetch", "locate"]

log = logging.getLogger(__name__)

_TIMEOUT = 60.0


def cache_directory() -> pathlib.Path:
    """Where downloads are kept: GIND_CACHE, or ~/.cache/gind/datasets."""
    chosen = os.environ.get("GIND_CACHE")
    return pathlib.Path(chosen).expanduser() if chosen else pathlib.Path.home() / ".cache" / "gind" / "datasets"


def locate(entry: Entry, root: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """The directory that holds all files of `entry`: `root` (default: GIND_DATA), or the cache; `root` is only read."""
    local = root if root is not None else os.environ.get("GIND_DATA") or None
    if local is not None:
        local = pathlib.Path(local).expanduser()
        if not local.is_dir():
            raise DataError(f"The data directory {local} is not a directory. Correct `--data DIR` or GIND_DATA.")
        if not missing(entry, local):
            return local
    cache = cache_directory()
    absent = set(missing(entry, cache))
    try:
        _download([file for file in entry.files if file.path in absent], cache)
    except (OSError, http.client.HTTPException, zipfile.BadZipFile, LookupError) as error:
        # OSError: urllib's refusals, timeouts and TLS errors all are; so is a cache that cannot be written
        raise DataError(_refusal(entry, local, cache, error)) from error
    return cache


def fetch(url: str, path: pathlib.Path) -> None:
    """The file at `url`, written to `path`."""
    log.info("downloading %s", url)
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
        _write(response, path)


def _write(source: IO[bytes], path: pathlib.Path) -> None:
    """All of `source` at `path`, or nothing: half a file would be taken for a whole one next time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        part = pathlib.Path(folder) / path.name
        with part.open("wb") as target:
            shutil.copyfileobj(source, target)
        part.replace(path)


def _download(files: list[RawFile], cache: pathlib.Path) -> None:
    for file in files:
        if not file.url:
            raise LookupError(f"{file.path} has no public address")
        if not file.url.endswith(".zip"):
            fetch(file.url, cache / file.path)
    for url in sorted({file.url for file in files if file.url.endswith(".zip")}):
        with tempfile.TemporaryDirectory(prefix="gind-") as folder:
            archive = pathlib.Path(folder) / url.rpartition("/")[2]
            fetch(url, archive)
            _unpack(archive, [cache / file.path for file in files if file.url == url])


def _unpack(archive: pathlib.Path, paths: list[pathlib.Path]) -> None:
    with zipfile.ZipFile(archive) as content:
        # by their last names only: a name in an archive must not choose where it is written
        members = {member.rpartition("/")[2]: member for member in content.namelist()}
        for path in paths:
            if path.name not in members:
                raise LookupError(f"{archive.name} does not hold {path.name}")
            with content.open(members[path.name]) as source:
                _write(source, path)


def _refusal(entry: Entry, local: pathlib.Path | None, cache: pathlib.Path, error: Exception) -> str:
    absent = missing(entry, local or cache)
    listed = ", ".join(absent[:3]) + (f" and {len(absent) - 3} more" if len(absent) > 3 else "")
    where = f"{local}" if local else f"{cache} (no `--data DIR` or GIND_DATA is set)"
    return (
        f"{entry.name}: {len(absent)} of {len(entry.files)} files are not under {where}: {listed}; and downloading "
        f"failed ({type(error).__name__}: {error}). Put them under a directory DIR and pass `--data DIR` or "
        "set GIND_DATA."
    )
