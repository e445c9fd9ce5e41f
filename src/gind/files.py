"""Files that are either whole or not there."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["write_atomically"]


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """A new, empty file beside `path`; when the block ends well, it takes the place of `path` in one step.

    Its bytes are on the disk before the name changes, and the name before the call returns: a kill or a power cut at
    any moment leaves the old file or the new one. A kill may leave the new one as `.{name}.*.part`.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    # readable by whoever may read other new files: the system applies the umask, which cannot be asked for safely
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(path: Path) -> None:
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) if path.is_dir() else os.O_RDWR
    if path.is_dir() and os.name == "nt":  # Windows cannot open directories
        return
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
