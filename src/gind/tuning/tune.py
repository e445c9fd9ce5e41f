"""`tune`: the loop of a search on one dataset."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from gind.experiments import set_up
from gind.experiments.worker import Worker, wait_for_any
from gind.tuning.choose import Tried
from gind.tuning.results import write_settings, write_trials
from gind.tuning.search import Search, place_of
from gind.tuning.study import Attempt, Study, TuningError
from gind.tuning.workers import Result, train

__all__ = ["Tuning", "tune"]


@dataclasses.dataclass(eq=False)
class Tuning:
    """A search on a dataset that is open; iterating runs the trials that are missing."""

    study: Study
    directory: Path
    root: Path | None
    jobs: int

    @property
    def settings(self) -> Path:
        """Where the best settings are."""
        return self._path("toml")

    @property
    def trials(self) -> Path:
        """Where the table of all trials is."""
        return self._path("csv")

    def __iter__(self) -> Iterator[Tried]:
        """The trials as they end; files are written after each."""
        missing = self.study.search.trials - len(self.study.tried())
        if missing > 0:
            self._check_data()
            for tried in _Loop(self.study, self.root, missing).run(self.jobs):
                self._write()
                yield tried
        self._write()

    def _check_data(self) -> None:
        """Refuse before the first trial what every trial would fail of: no data, no such split, another task."""
        search, dataset = self.study.search, self.study.dataset
        for split in search.splits:
            self.study.metric = set_up(search.spec(dataset, {}, split), self.root).problem.metric

    def _write(self) -> None:
        study, tried, best = self.study, self.study.tried(), self.study.best()
        write_trials(self.trials, study.search, tried)
        if best is not None:
            write_settings(self.settings, study.search, study.dataset, study.metric, best, len(tried))

    def _path(self, ending: str) -> Path:
        return self.directory / f"{place_of(self.study.dataset)}.{ending}"


@contextmanager
def tune(search: Search, dataset: str, out: Path, *, root: Path | None = None, jobs: int = 1) -> Iterator[Tuning]:
    """Open the search of `out`/<name>/<dataset>.journal, or begin it; for this process alone.

    with tune(search, "texas", Path("tuned"), jobs=2) as tuning:
        for tried in tuning: ...
    """
    directory = out / search.name
    place = place_of(dataset)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(directory / f".{place}.lock", timeout=0)
        lock.acquire()
    except filelock.Timeout as error:
        raise TuningError(
            f"Another process is tuning {dataset} in {directory}. Wait, or choose another --out."
        ) from error
    try:
        yield Tuning(Study(search, dataset, directory / f"{place}.journal"), directory, root, jobs)
    finally:
        lock.release()


class _Loop:
    """Keeps the workers busy: a worker takes a trial through its splits, one after the other."""

    def __init__(self, study: Study, root: Path | None, missing: int) -> None:
        self.study, self.root, self.missing = study, root, missing
        self.running: dict[Worker[Result], Attempt] = {}

    def run(self, jobs: int) -> Iterator[Tried]:
        try:
            for _ in range(min(jobs, self.missing)):
                self._begin(Worker(train))
            while self.running:
                for worker in wait_for_any(self.running):
                    tried = self._advance(worker)
                    if tried is not None:
                        yield tried
        finally:
            for worker in self.running:
                worker.end()

    def _begin(self, worker: Worker[Result]) -> None:
        """Give a worker the next trial, or its end."""
        if len(self.running) < self.missing:
            self.running[worker] = self.study.ask()
            self._train(worker)
        else:
            worker.end()

    def _train(self, worker: Worker[Result]) -> None:
        attempt, study = self.running[worker], self.study
        split = study.search.splits[len(attempt.results)]
        worker.begin(study.search.spec(study.dataset, attempt.values, split), self.root)

    def _advance(self, worker: Worker[Result]) -> Tried | None:
        """Take a result; the trial, if it has ended."""
        attempt, result = self.running[worker], worker.result()
        if result is None:
            tried = self.study.lose(attempt)
            del self.running[worker]
            worker.end()
            worker = Worker(train)
        elif result.error:
            tried = self.study.fail(attempt, result.error)
        else:
            tried = self.study.add(attempt, result.value, result.loss)
            if tried is None:
                self._train(worker)
                return None
        self.running.pop(worker, None)
        self.missing -= tried is not None
        self._begin(worker)
        return tried
