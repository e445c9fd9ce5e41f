"""Build the C loops for this machine, once, and load them.

The first use compiles them with the compiler that is there, for the very CPU (-march=native), and keeps the result in
the cache (`gind.cache`), under a name made of source, compiler and CPU. Where that is not possible `library` says why
(ImportError), and numba serves instead. `GIND_NATIVE=0` turns it off.
"""

import ctypes
import functools
import os
import platform
import shutil
import stat
import subprocess
import sys
import zlib
from pathlib import Path

from gind.cache import cache_directory
from gind.errors import UserError
from gind.files import write_atomically

__all__ = ["library"]

_SOURCE = Path(__file__).parent
_FILES = ("edges.c", "loops.h", "scalar32.h", "scalar64.h")
# multiply-add may be fused; nothing may reorder sums or forget NaN and infinity
_FLAGS = ("-O3", "-std=c11", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros")
_TUNING = (("-march=native",), ("-mcpu=native",), ())
_SECONDS = 120


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled loops; raises ImportError with the reason where they cannot be had."""
    compiler = _compiler()
    place = _cache() / f"edges-{_fingerprint(compiler):08x}.so"
    try:
        try:
            return ctypes.CDLL(str(place))
        except OSError:  # not there yet, or broken
            _compile(compiler, place)
            return ctypes.CDLL(str(place))
    except (OSError, subprocess.SubprocessError) as error:
        raise ImportError(f"the C loops could not be built ({error})") from error


def _compiler() -> str:
    if os.environ.get("GIND_NATIVE", "1") == "0":
        raise ImportError("GIND_NATIVE=0 is set")
    if sys.platform == "win32":
        raise ImportError("on Windows the C loops are not built")
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise ImportError("there is no C compiler")
    return compiler


def _cache() -> Path:
    """A directory that only we can write to: what lies there will be run."""
    try:
        directory = cache_directory("kernels")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except (OSError, UserError) as error:
        raise ImportError(f"no directory to keep the C loops ({error}); set GIND_CACHE") from error
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ImportError(f"others may write to {directory}; set GIND_CACHE to a directory of your own")
    return directory


def _fingerprint(compiler: str) -> int:
    """Changes with the source, the flags, the compiler and the CPU."""
    state = zlib.crc32("\n".join([*_FLAGS, compiler, sys.platform, platform.machine(), _cpu()]).encode())
    with_date = Path(shutil.which(compiler.split()[0]) or compiler)
    if with_date.exists():
        state = zlib.crc32(str(with_date.resolve()).encode() + str(with_date.stat().st_mtime_ns).encode(), state)
    for name in _FILES:
        state = zlib.crc32((_SOURCE / name).read_bytes(), state)
    return state


def _cpu() -> str:
    """What the CPU can do, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(line for line in dict.fromkeys(lines) if line.startswith(("model name", "flags", "Features")))


def _compile(compiler: str, place: Path) -> None:
    """Whole or not at all: processes that build at the same time do not disturb each other."""
    source = str(_SOURCE / "edges.c")
    with write_atomically(place) as temporary:
        for tuning in _TUNING:
            command = [*compiler.split(), *_FLAGS, *tuning, "-shared", "-fPIC", source, "-o", str(temporary)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
            if done.returncode == 0:
                return
        raise OSError(f"{compiler}: {' '.join(done.stderr.split())[:200]}")
