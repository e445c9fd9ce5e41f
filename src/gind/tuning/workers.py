"""Processes that train and tell the result on validation; one that is killed takes nothing with it but its training."""

import contextlib
import math
import multiprocessing
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final, NamedTuple

from gind.experiments import Spec, validate
from gind.experiments.worker import become_worker

__all__ = ["Result", "Worker", "wait_for_any"]

START: Final = "spawn"


class Result(NamedTuple):
    """The best epoch's metric and loss on validation, or what went wrong."""

    value: float
    loss: float
    error: str = ""


class Worker:
    """A process with one thread to compute with."""

    def __init__(self, root: Path | None) -> None:
        context = multiprocessing.get_context(START)
        self.connection, other = context.Pipe()
        # a daemon ends with us; if we are killed, it ends itself
        self._process = context.Process(target=_serve, args=(other, root), daemon=True)
        self._process.start()
        other.close()

    def train(self, spec: Spec) -> None:
        """Begin a training."""
        with contextlib.suppress(OSError):  # it is dead, and `result` will say so
            self.connection.send(spec)

    def result(self) -> Result | None:
        """The result of the training, when it has come; None if the process is dead."""
        try:
            result: Result = self.connection.recv()
        except (EOFError, OSError):
            return None
        return result

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def wait_for_any(workers: Sequence[Worker]) -> list[Worker]:
    """The workers that have a result, or are dead; waits for the first."""
    ready = wait([worker.connection for worker in workers])
    return [worker for worker in workers if worker.connection in ready]


def _serve(connection: Connection, root: Path | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group: the parent decides
    become_worker()
    while True:
        result = _validate(connection.recv(), root)
        if result is None:
            return  # stopped by a signal: the same as killed
        connection.send(result)


def _validate(spec: Spec, root: Path | None) -> Result | None:
    try:
        report = validate(spec, root=root, threads=1)
    except Exception as error:
        return Result(math.nan, math.nan, f"{type(error).__name__}: {' '.join(str(error).split())}")
    if not report.finished:
        return None
    if not math.isfinite(report.best_value) or not math.isfinite(report.best_loss):
        return Result(math.nan, math.nan, "no epoch had a finite loss on validation")
    return Result(report.best_value, report.best_loss)
