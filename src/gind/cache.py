"""Where files are kept that can be had again: downloads, and kernels compiled from C."""

import os
from pathlib import Path
from typing import Literal

from gind.errors import UserError

__all__ = ["cache_directory"]

_BELOW = {"datasets": Path("gind", "datasets"), "kernels": Path("gind")}


def cache_directory(what: Literal["datasets", "kernels"]) -> Path:
    """`$GIND_CACHE` itself if set; else `gind/datasets` or `gind` (kernels) in `$XDG_CACHE_HOME` or `~/.cache`.

    It need not exist yet.
    """
    try:
        if given := os.environ.get("GIND_CACHE"):
            return Path(given).expanduser()
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / _BELOW[what]
    except RuntimeError as error:
        raise UserError(
            f"There is no directory to keep {what} in ({error}). Set GIND_CACHE to one of yours."
        ) from error
