"""Peak memory of a call above what was there before it, in a process of its own (Linux)."""

import ctypes
import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

__all__ = ["peak_bytes"]

_MMAP_THRESHOLD = -3  # name of glibc's mallopt


def peak_bytes(make: Callable[[], Callable[[], object]]) -> int | None:
    """The peak of run = make() on its second call, above the level just before it; None where it cannot be measured.

    `make` must be picklable. The first call compiles and fills caches.
    """
    if not sys.platform.startswith("linux"):
        return None
    # the server imports once and is forked for each measurement, before any thread was started in it
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__package__])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(make, sender))
    process.start()
    sender.close()
    try:
        result: int | None = receiver.recv()
    except EOFError:  # it died, perhaps of too much memory
        result = None
    process.join()
    receiver.close()
    return result


def _measure(make: Callable[[], Callable[[], object]], sender: Connection) -> None:
    _give_back()
    run = make()
    run()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        before = _status("VmRSS")
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets the peak
        run()
        sender.send(_status("VmHWM") - before)
    except (AttributeError, OSError):  # another C library, or a kernel that does not let us
        sender.send(None)
    sender.close()
    os._exit(0)


def _give_back() -> None:
    """Give large blocks back to the system when they are freed: the peak is then that of the tensors in use."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 2**18)


def _status(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
