"""What every process of ours that trains for another does first."""

import multiprocessing
import os
import threading

from gind.kernels.allocator import keep_memory

__all__ = ["become_worker"]


def become_worker() -> None:
    """End with the process that started this one, however that ended; keep the memory that is freed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_memory()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
