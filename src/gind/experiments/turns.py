"""Runs that take turns, epoch by epoch: systems on one split see the same machine, so their times can be compared.

The report of each has its usual fields, and

    timing.preprocessing   seconds that the first epoch took longer than the median of all
    timing.training        seconds of all epochs, without these
"""

import contextlib
import dataclasses
import itertools
import multiprocessing
import statistics
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from gind.experiments.artefact import REPORT
from gind.experiments.grid import Finished, run_cell
from gind.experiments.sheet import Cell, Sheet
from gind.experiments.worker import become_worker, how_it_ended
from gind.train import EpochRecord, Observer

__all__ = ["run_in_turns", "timing"]

_Talk = tuple[Connection, BaseProcess]
_Watch = Callable[[Sequence[Cell], int], None]


def run_in_turns(
    sheet: Sheet, results: Path, work: Path, *, root: Path | None = None, watch: _Watch | None = None
) -> Iterator[Finished]:
    """All cells of a dataset, split and seed anew, unless all have a report: times of different hours are not compared.

    So a cell that does not end beside others that do loses the report of an earlier round. Whoever stops here, by
    Ctrl-C or because it asks for no more, ends all processes. `watch` is told after each epoch which cells are still
    running, and how many epochs each of them has done.
    """
    rounds: dict[tuple[str, int, int], list[Cell]] = {}
    for cell in sheet.cells:
        rounds.setdefault(cell.round, []).append(cell)
    for cells in rounds.values():
        yield from _round(dataclasses.replace(sheet, cells=tuple(cells)), results, work, root, watch)


def _round(sheet: Sheet, results: Path, work: Path, root: Path | None, watch: _Watch | None) -> Iterator[Finished]:
    """Those that take turns with each other."""
    if all(sheet.done(cell, results) for cell in sheet.cells):
        yield from (Finished(cell, skipped=True) for cell in sheet.cells)
        return
    context = multiprocessing.get_context("spawn")
    talks: dict[Cell, _Talk] = {}
    new: set[Cell] = set()
    try:
        for cell in sheet.cells:
            ours, theirs = context.Pipe()
            arguments = (cell, results / sheet.path(cell), work / sheet.path(cell), root, theirs)
            started = context.Process(target=_run_cell, args=arguments, daemon=True)
            started.start()
            theirs.close()
            talks[cell] = (ours, started)
        for ended in _take_turns(talks, watch):
            new |= set() if ended.error else {ended.cell}
            yield ended
    finally:
        for talk, process in talks.values():
            process.kill()
            process.join()
            talk.close()
        for cell in set(sheet.cells) - new if new else ():
            (results / sheet.path(cell) / REPORT).unlink(missing_ok=True)


def _take_turns(talks: dict[Cell, _Talk], watch: _Watch | None) -> Iterator[Finished]:
    """Epoch by epoch until all have ended; those that have are taken out."""
    listen = _answer  # first that each is ready, so that no epoch runs beside the loading of another
    for epoch in itertools.count():
        for cell, (talk, process) in list(talks.items()):
            try:
                ended = listen(talk)
                if ended is not None:
                    process.join()
            except (EOFError, OSError):
                ended = how_it_ended(process)
            if ended is not None:
                del talks[cell]
                yield Finished(cell, ended)
        if not talks:
            return
        if watch is not None:
            watch(tuple(talks), epoch)
        listen = _turn


def _turn(talk: Connection) -> str | None:
    """Let one go on until its next epoch is done; how it ended, if it did."""
    talk.send(None)
    return _answer(talk)


def _answer(talk: Connection) -> str | None:
    """Wait until one is ready for its next turn; how it ended, if it did."""
    answer: str | None = talk.recv()
    return answer


class _Turns(Observer):
    """Waits for its turn before every epoch."""

    def __init__(self, talk: Connection) -> None:
        self.talk = talk
        self.seconds: list[float] = []

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        """Say that data and model are ready, and wait for the first turn."""
        self.talk.send(None)
        self.talk.recv()

    def epoch(self, record: EpochRecord) -> None:
        """Say that it is done, and wait."""
        self.seconds.append(record.seconds)
        self.talk.send(None)
        self.talk.recv()


def _run_cell(cell: Cell, results: Path, work: Path, root: Path | None, talk: Connection) -> None:
    """One cell in a process of its own; its last word is the message of what went wrong, or nothing."""
    become_worker()
    turns = _Turns(talk)
    said = run_cell(
        cell, results, work, root, anew=True, observers=[turns], more=lambda: {"timing": timing(turns.seconds)}
    )
    with contextlib.suppress(OSError):  # nobody listens any more
        talk.send(said)


def timing(seconds: Sequence[float]) -> dict[str, float]:
    """Preprocessing and training, of the seconds of all epochs."""
    if not seconds:
        return {"preprocessing": 0.0, "training": 0.0}
    preprocessing = max(0.0, seconds[0] - statistics.median(seconds))
    return {"preprocessing": preprocessing, "training": sum(seconds) - preprocessing}
