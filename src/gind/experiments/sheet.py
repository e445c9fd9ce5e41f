"""A sheet: every dataset x model x split that shall be run, as a TOML file.


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
choose = true                 they are candidates for MODEL+nested, the best on validation split by split; optional
row = "GCN"                   row of the paper's table to show them beside, if not that of the model; optional
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gind.datasets.table import nearest
from gind.experiments.artefact import REPORT
from gind.experiments.block import Keys, check_seeds, nested, variants
from gind.experiments.keys import ConfigError
from gind.experiments.spec import combine, other_key
from gind.experiments.toml import read_toml

__all__ = ["NESTED", "Cell", "Sheet", "parse_splits", "read_sheet"]

NESTED = "nested"
"""the variant that is chosen among candidates, and its protocol"""
_PARTS = frozenset({"splits", "folds"})


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
    choose: bool = False
    """whether it is a candidate, see reports/choose.py"""

    @property
    def system(self) -> str:
        """The model, with its variant."""
        return f"{self.model}+{self.variant}" if self.variant else self.model

    @property
    def chosen(self) -> str:
        """The system that is the best of its candidates, of which this is one; empty if it is none."""
        return f"{self.model}+{NESTED}" if self.choose else ""

    @property
    def names(self) -> frozenset[str]:
        """What selects it: its model, its system (MODEL+ for that without a variant), and its choice, if it has one."""
        return frozenset({self.model, f"{self.model}+{self.variant}", self.chosen} - {""})

    @property
    def round(self) -> tuple[str, int, int]:
        """What it shares with those it takes turns with, where they do."""
        return self.dataset, self.split, self.seed

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

    @property
    def choices(self) -> dict[tuple[str, str], tuple[Cell, ...]]:
        """The candidates of every system that is chosen, by dataset and system."""
        groups: dict[tuple[str, str], tuple[Cell, ...]] = {}
        for cell in self.cells:
            if cell.chosen:
                place = (cell.dataset, cell.chosen)
                groups[place] = (*groups.get(place, ()), cell)
        return groups

    @property
    def expected(self) -> dict[tuple[str, str], int]:
        """How many runs each row needs, by dataset and system; of a choice one for each split and seed."""
        rows = Counter((cell.dataset, cell.system) for cell in self.cells)
        return {**rows, **{place: len({(c.split, c.seed) for c in cells}) for place, cells in self.choices.items()}}

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

    def missing(self, results: Path) -> tuple[Cell, ...]:
        """What is to be run: cells without a report, and where they take turns all of their rounds."""
        missing = [cell for cell in self.cells if not self.done(cell, results)]
        rounds = {cell.round for cell in missing if self.turns}
        return tuple(cell for cell in self.cells if cell.round in rounds) if self.turns else tuple(missing)

    def select(self, datasets: Sequence[str], models: Sequence[str], splits: Sequence[int]) -> "Sheet":
        """The cells of these datasets, models (or systems: a variant, or all candidates of a choice) and splits.

        An empty choice means all.
        """
        for what, chosen, there in (
            ("dataset", datasets, {cell.dataset for cell in self.cells}),
            ("model", models, {name for cell in self.cells for name in cell.names}),
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
            and (not models or not cell.names.isdisjoint(models))
            and (not splits or cell.split in splits)
        )
        return dataclasses.replace(self, cells=kept)


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
        about = {key: block[key] for key in ("results", "row", "choose") if key in block}
        cells += [
            Cell(dataset, model, split, seed, keys, variant, **about)
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
    _check_choices(sheet, path)
    return sheet


def _check_choices(sheet: Sheet, path: Path) -> None:
    """Candidates have the same splits, a part of them that validates, and other keys than each other."""
    systems = {(cell.dataset, cell.system) for cell in sheet.cells}
    for place, candidates in sheet.choices.items():
        name = f"{path}: {place[1]} on {place[0]}"
        if place in systems:
            raise ConfigError(f"{name} is a variant and a choice. Give the variant another name (as = ...).")
        if any(cell.protocol == "paper" for cell in candidates):
            raise ConfigError(f'{name} is chosen on validation, which protocol "paper" does not have.')
        if any(_PARTS & dict(_bare(cell.keys)).keys() for cell in candidates):
            raise ConfigError(f"{name} must be chosen among runs on the same parts; leave out splits and folds in set.")
        runs: dict[str, set[tuple[int, int]]] = {}
        for cell in candidates:
            runs.setdefault(cell.system, set()).add((cell.split, cell.seed))
        if len(runs) < 2 or len(set(map(frozenset, runs.values()))) > 1:
            raise ConfigError(f"{name} needs two candidates or more, all on the same splits and seeds.")
        if len({_bare(cell.keys) for cell in candidates}) < len(runs):
            raise ConfigError(f"{name} has two candidates with the same keys. Let them differ in what they set.")


def _bare(keys: Keys) -> Keys:
    """Without the names of sections, which a key may have or not."""
    return tuple(sorted((re.sub(r"^(model|train|data)\.", "", key), value) for key, value in keys))


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
