"""Peak memory of a call above what was there before it, in a process of its own (Linux)."""

import ctypes
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection


def tune_allocator(threshold: int = 2**30) -> None:
    """Take blocks up to a size from the heap, larger ones from the system; a fixed limit, where glibc's own moves.

    With a high limit edge-storing code does not pay for system calls, so that times are fair. With a low one a tensor
    that is freed is gone at once, so that the peak is that of the tensors and not of a fragmented heap.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(-3, threshold)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def peak_bytes(make: Callable[[], Callable[[], object]]) -> int:
    """Run make()() in a fresh process: the peak during the second call, above the level just before it."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(make, sender))
    process.start()
    sender.close()
    result = int(receiver.recv())
    process.join()
    return result


def _measure(make: Callable[[], Callable[[], object]], sender: Connection) -> None:
    tune_allocator(threshold=2**18)
    run = make()
    ctypes.CDLL(None).malloc_trim(0)
    before = _status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak
    run()
    sender.send(_status("VmHWM") - before)
    os._exit(0)


def _status(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
