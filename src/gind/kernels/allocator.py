"""Memory that is given back to the system has to be cleared when it is asked for again; here it is kept."""

import ctypes
import functools
import sys

__all__ = ["keep_memory"]

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of glibc's mallopt


@functools.cache
def keep_memory() -> bool:
    """Let this process keep what it frees, for its next tensors; whether that could be set (glibc).

    By default glibc maps each large block anew and gives it back when it is freed, so the kernel clears every page of
    every large tensor: code that makes tensors of edges spends most of its time there. What is kept counts as memory
    of the process until it ends. It is for processes of our own, such as the commands; a library must not do it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))
