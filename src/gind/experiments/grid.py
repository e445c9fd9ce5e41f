"""Many runs: every dataset x model x split of a sheet, cell by cell, in parallel processes; what is done is not redone.

A sheet is a TOML file:

    title = "..."
    seeds = [0]
    turns = false                 true: systems on a split take turns, so that their times can be compared; optional
    [[cells]]
    datasets = ["texas", "wisconsin"]
    models = ["gind", "gcn"]
    splits = "0-9"
    set = { epochs = 100 }        keys for all of them, optional
    as = "short"                  their name, where other keys make another system; see block.py for more
    results = "baselines"         whose results they are, if another sheet's; optional
    seeds = [1, 2]                theirs, if not those of the sheet; optional
    row = "GCN"                   row of the paper's table to show them beside, if not that of the model; optional
"""

import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gind.datasets.table import nearest
from gind.experiments.artefact import CONFIG, REPORT, read_config, write_json
from gind.experiments.block import Keys, check_seeds, nested, variants
from gind.experiments.keys import ConfigError
from gind.experiments.run import run
from gind.experiments.spec import Spec, combine, make_spec, other_key
from gind.experiments.toml import read_toml
from gind.experiments.worker import Worker, wait_for_any
from gind.train import Observer

__all__ = ["Cell", "Finished", "Sheet", "parse_splits", "read_sheet", "run_cell", "run_grid"]


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of a sheet."""

    dataset: str
    model: str
    split: int
    seed: int = 0
    keys: Keys = ()
    variant: str = ""
    """the name that its keys give it, beside the plain model"""
    results: str = ""
    """the sheet whose results it is; empty: of its own"""
    row: str = ""
    """of the paper's table, where the model does not say it"""

    @property
    def system(self) -> str:
        """The model, with its variant."""
        return f"{self.model}+{self.variant}" if self.variant else self.model

    @property
    def place(self) -> Path:
        """Where its report lies, below the results of a sheet."""
        return Path(self.dataset) / self.system / f"{self.split}-{self.seed}"

    @property
    def table(self) -> dict[str, Any]:
        """What `make_spec` takes."""
        run = {"dataset": self.dataset, "split": self.split, "seed": self.seed, "model": {"name": self.model}}
        return combine([run, nested(self.keys)])

    @property
    def protocol(self) -> str:
        """What chooses its epoch, see protocol.py."""
        keys = dict(self.keys)
        return str(keys.get("protocol", keys.get("data.protocol", "honest")))

    def mismatch(self, report: Mapping[str, Any]) -> str:
        """What shows that a report is of another run; nothing if it is of this one. Only keys of the sheet count."""
        config = report.get("config")
        config = config if isinstance(config, Mapping) else {}
        there = (config.get("dataset"), report.get("model"), report.get("split"), report.get("seed"))
        here = (self.dataset, self.model, self.split, self.seed)
        if there != here:
            return f"this is the report of {_words(there)}, but lies where that of {_words(here)} belongs"
        data = config.get("data")
        protocol = data.get("protocol", "honest") if isinstance(data, Mapping) else "honest"
        if protocol != self.protocol:  # also where the sheet says nothing: test labels must not choose unsaid
            return f"this is the report of a run with protocol {protocol!r}, not {self.protocol!r}"
        other = other_key(self.table, nested(self.keys), config) if self.keys else ""
        return other and f"this is the report of a run with other keys than the sheet's: {other}"


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A named list of cells."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    turns: bool = False
    """whether systems on a split take turns, see turns.py"""

    def path(self, cell: Cell) -> Path:
        """Where the report of a cell lies, below the results of all sheets: every result has one place."""
        return Path(cell.results or self.name) / cell.place

    def done(self, cell: Cell, results: Path) -> bool:
        """Whether the report of a cell is there; one that is broken or of another run is not."""
        try:
            report = json.loads((results / self.path(cell) / REPORT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        timed = isinstance(report, dict) and (not self.turns or "timing" in report)
        return timed and not cell.mismatch(report)

    def select(self, datasets: Sequence[str], models: Sequence[str], splits: Sequence[int]) -> "Sheet":
        """The cells of these datasets, models (or systems: a variant alone) and splits; an empty choice means all."""
        for what, chosen, there in (
            ("dataset", datasets, {cell.dataset for cell in self.cells}),
            ("model", models, {name for cell in self.cells for name in (cell.model, cell.system)}),
        ):
            for name in chosen:
                if name not in there:
                    raise ConfigError(f"{self.name} has no {what} {name!r}. {nearest(name, there)}")
        known = sorted({cell.split for cell in self.cells})
        for split in splits:
            if split not in known:
                raise ConfigError(f"{self.name} has no split {split}. There are: {', '.join(map(str, known))}.")
        kept = tuple(
            cell
            for cell in self.cells
            if (not datasets or cell.dataset in datasets)
            and (not models or cell.model in models or cell.system in models)
            and (not splits or cell.split in splits)
        )
        return dataclasses.replace(self, cells=kept)


@dataclasses.dataclass(frozen=True)
class Finished:
    """How a cell ended: `error` is empty if its report is there."""

    cell: Cell
    error: str = ""
    skipped: bool = False


def read_sheet(path: Path) -> Sheet:
    """A sheet of a TOML file; splits differ fastest last, so that early cells show every model once."""
    table = read_toml(path)
    unknown = set(table) - {"title", "seeds", "turns", "cells"}
    if unknown or not isinstance(table.get("cells"), list) or not table["cells"]:
        said = "cells without any" if table.get("cells") == [] else ", ".join(table) or "nothing"
        raise ConfigError(f"{path}: expected title, seeds, turns and [[cells]], got {said}.")
    check_seeds(table.get("seeds", [0]), path)
    turns = table.get("turns", False)
    if not isinstance(turns, bool):
        raise ConfigError(f"{path}: turns must be true or false, got {turns!r}.")
    if turns and any("results" in block for block in table["cells"]):
        raise ConfigError(f"{path}: runs that take turns are repeated together; leave out `results` of another sheet.")
    cells = []
    for block in table["cells"]:
        named = variants(block, path)
        cells += [
            Cell(dataset, model, split, seed, keys, variant, block.get("results", ""), block.get("row", ""))
            for split in parse_splits(block["splits"], f"{path}: ")
            for seed in block.get("seeds", table.get("seeds", [0]))
            for dataset in block["datasets"]
            for model in block["models"]
            for variant, keys in named
        ]
    sheet = Sheet(path.stem, str(table.get("title", path.stem)), tuple(cells), turns)
    twice = [place for place, count in Counter(map(sheet.path, cells)).items() if count > 1]
    if twice:
        raise ConfigError(f"{path}: {twice[0]} is there twice. Give one of them another name (as = ...).")
    return sheet


def parse_splits(text: str, where: str = "") -> list[int]:
    """ "0-9", "3" or "0,2,5-7" as numbers; a refusal begins with `where`."""
    numbers: list[int] = []
    for piece in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", piece.strip())
        first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if first > last:
            raise ConfigError(f"{where}splits are written like 0-9 or 0,2,5, got {text!r}.")
        numbers += range(first, last + 1)
    return numbers


def _words(run: tuple[Any, ...]) -> str:
    dataset, model, split, seed = run
    return f"{dataset}/{model}/{split}-{seed}"


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

    A training that was stopped goes on, unless it was begun with other keys or defaults, or all is wanted `anew`. The
    report stays as it was until there is another.
    """
    try:
        spec = make_spec(cell.table)
        overwrite = anew or _stale(work, spec)
        outcome = run(spec, work, root=root, resume=True, overwrite=overwrite, observers=observers, threads=1)
        if not outcome.fit.finished:
            return f"stopped by {outcome.fit.stopped_by}"
        results.mkdir(parents=True, exist_ok=True)
        write_json(results / REPORT, outcome.report | more())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _stale(work: Path, spec: Spec) -> bool:
    """Whether a training lies there that differs from `spec` in anything, be it ended or not."""
    if not (work / CONFIG).exists():
        return False
    try:
        return read_config(work)[0].table() != spec.table()
    except ConfigError:  # it has keys that are no more
        return True
