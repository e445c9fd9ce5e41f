"""Ctrl-C and SIGTERM end an epoch, not a file."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "catch_interrupt"]


class Interrupt:
    """Whether somebody asked to stop, and by which signal."""

    name: str | None = None


@contextmanager
def catch_interrupt() -> Iterator[Interrupt]:
    """The first SIGINT or SIGTERM inside is noted, so that the epoch can end; a second one acts at once.

    Outside of the main thread signals cannot be caught, and nothing is.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.name = signal.Signals(number).name
        for other, handler in before.items():
            signal.signal(other, handler)

    for number in before:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
