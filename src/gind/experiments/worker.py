"""Processes that work for this one: a process that is killed takes nothing with it but its task."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Generic, TypeVar

from gind.kernels.allocator import keep_memory

__all__ = ["Worker", "become_worker", "how_it_ended", "wait_for_any"]

START: Final = "spawn"

Result = TypeVar("Result")


class Worker(Generic[Result]):
    """A process that does `work`, a function of some module, again and again; None in place of a result ends it."""

    def __init__(self, work: Callable[..., Result | None]) -> None:
        context = multiprocessing.get_context(START)
        self.connection, other = context.Pipe()
        # a daemon ends with us; if we are killed, it ends itself
        self._process = context.Process(target=_serve, args=(other, work), daemon=True)
        self._process.start()
        other.close()

    def begin(self, *arguments: Any) -> None:
        """Let it do its work with these."""
        self._send(arguments)

    def result(self) -> Result | None:
        """The result of the work, when it has come; None if the process is dead."""
        try:
            result: Result = self.connection.recv()
        except (EOFError, OSError):
            return None
        return result

    def death(self) -> str:
        """How the process ended that `result` found dead."""
        self.connection.close()
        return how_it_ended(self._process)

    def dismiss(self) -> None:
        """Let the process finish what it does, and end."""
        self._send(None)
        self._process.join()
        self.connection.close()

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self.connection.close()

    def _send(self, arguments: tuple[Any, ...] | None) -> None:
        with contextlib.suppress(OSError):  # it is dead, and `result` will say so
            self.connection.send(arguments)


Busy = TypeVar("Busy", bound=Worker[Any])


def wait_for_any(workers: Iterable[Busy]) -> list[Busy]:
    """The workers that have a result, or are dead; waits for the first."""
    by_connection = {worker.connection: worker for worker in workers}
    ready = wait(list(by_connection))
    return [worker for connection, worker in by_connection.items() if connection in ready]


def how_it_ended(process: BaseProcess) -> str:
    """What to say of a process that is dead, or about to be, without a word of its own."""
    process.join()
    code = process.exitcode or 0
    if code == -signal.SIGKILL:
        return "its process was killed. Out of memory?"
    return f"its process ended with status {code}" if code >= 0 else f"its process was ended by signal {-code}"


def become_worker() -> None:
    """What a process of ours that trains for another does first.

    It will end with the process that started it, however that ended, and keep the memory that it frees.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_memory()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(connection: Connection, work: Callable[..., Any]) -> None:
    become_worker()
    # Ctrl-C goes to the whole group: a training ends its epoch and saves, anything else ends here
    with contextlib.suppress(KeyboardInterrupt):
        while (arguments := connection.recv()) is not None:
            result = work(*arguments)
            if result is None:
                return
            connection.send(result)
