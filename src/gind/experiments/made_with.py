"""What numbers were made with."""

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import torch

import gind

__all__ = ["commit", "versions"]


def versions() -> dict[str, str]:
    """Versions of what computes, the commit of this package where it is known, and the machine."""
    packages = ("torch", "torch_geometric", "numpy", "numba")
    last = commit(Path(gind.__file__).parent)
    return {
        "gind": gind.__version__,
        **{name: metadata.version(name) for name in packages},
        **({} if last is None else {"commit": last}),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": str(torch.get_num_threads()),
    }


@functools.cache
def commit(sources: Path) -> str | None:
    """The last commit that changed these sources, with a + if they differ from it; None outside of a git checkout."""
    last, changes = _git(sources, "log", "-1", "--format=%h", "--abbrev=12"), _git(sources, "status", "--porcelain")
    if not last:
        return None
    return f"{last}+" if changes else last


def _git(sources: Path, *command: str) -> str | None:
    try:
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # of another checkout
        done = subprocess.run(
            ["git", *command, "--", "."], cwd=sources, env=own, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
