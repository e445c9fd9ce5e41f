"""Many runs: the cells of a sheet in parallel processes; what is done is not redone."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gind.experiments.artefact import CHECKPOINT, CONFIG, METRICS, REPORT, WEIGHTS, read_run, write_json
from gind.experiments.keys import ConfigError
from gind.experiments.run import run, set_aside
from gind.experiments.sheet import Cell, Sheet
from gind.experiments.spec import Spec, make_spec
from gind.experiments.worker import Worker, wait_for_any
from gind.train import Observer
from gind.train.checkpoint import DamagedError

__all__ = ["Finished", "run_cell", "run_grid"]


@dataclasses.dataclass(frozen=True)
class Finished:
    """How a cell ended: `error` is empty if its report is there."""

    cell: Cell
    error: str = ""
    skipped: bool = False


def run_grid(sheet: Sheet, results: Path, work: Path, *, root: Path | None = None, jobs: int = 1) -> Iterator[Finished]:
    """Run what has no report yet, `jobs` at a time with one thread each; yields cells as they end.

    `results/<sheet>/<dataset>/<system>/<split>-<seed>/report.json` are kept, checkpoints and weights go to `work`.
    A process that is killed is one cell that failed.
    """
    open_cells = []
    for cell in sheet.cells:
        if sheet.done(cell, results):
            yield Finished(cell, skipped=True)
        else:
            open_cells.append(cell)
    waiting = iter(open_cells)
    running: dict[Worker[str], Cell] = {}
    idle: list[Worker[str]] = []
    ended: list[Finished] = []
    try:
        while True:
            for cell in itertools.islice(waiting, jobs - len(running)):
                worker = idle.pop() if idle else Worker(run_cell)
                running[worker] = cell
                worker.begin(cell, results / sheet.path(cell), work / sheet.path(cell), root)
            yield from ended  # after the next have begun: whoever reads may take time
            if not running:
                return
            ended = []
            for worker in wait_for_any(running):
                cell, error = running.pop(worker), worker.result()
                if error is not None:
                    idle.append(worker)
                ended.append(Finished(cell, worker.death() if error is None else error))
    finally:
        for worker in (*running, *idle):
            worker.dismiss()


def run_cell(
    cell: Cell,
    results: Path,
    work: Path,
    root: Path | None,
    *,
    anew: bool = False,
    observers: Sequence[Observer] = (),
    more: Callable[[], dict[str, Any]] = dict,
) -> str:
    """Train a cell and keep its report, with what `more` adds; the message of what went wrong, or nothing.

    A training that was stopped goes on, unless it was begun with other keys or defaults, its checkpoint is damaged
    (it is kept as NAME.damaged), or all is wanted `anew`. The report stays as it was until there is another.
    """
    try:
        spec = make_spec(cell.table)
        train = functools.partial(run, spec, work, root=root, resume=True, observers=observers, threads=1)
        try:
            outcome = train(overwrite=_stale(work, spec) or anew)
        except DamagedError:
            set_aside(work, CHECKPOINT)
            outcome = train(overwrite=True)
        if not outcome.fit.finished:
            return f"stopped by {outcome.fit.stopped_by}"
        results.mkdir(parents=True, exist_ok=True)
        write_json(results / REPORT, outcome.report | more())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _stale(work: Path, spec: Spec) -> bool:
    """Whether a training lies there that differs from `spec` in anything, be it ended or not.

    One that does not say what it is, because its config.toml is damaged or missing, is set aside.
    """
    try:
        table, _ = read_run(work)
    except ConfigError as error:
        if isinstance(error.__cause__, OSError):  # the file may be whole
            raise
        set_aside(work, CONFIG, CHECKPOINT, REPORT, WEIGHTS, METRICS)
        return False
    try:
        return make_spec(table, use_defaults=False).table() != spec.table()
    except ConfigError:  # it has keys that are no more
        return True
