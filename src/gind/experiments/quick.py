"""A small version of a sheet, to see that everything runs: few systems, small data, two splits, two epochs."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gind.datasets import find, on_disk
from gind.experiments.sheet import Cell, Sheet

__all__ = ["shrink"]

_SMALL = ("texas", "cornell", "wisconsin", "cornell-pre2022", "mutag")
_EMBEDDED = "wine"
_KEYS = {"epochs": 2, "patience": 0, "hidden": 4}
_VARIANTS = 2  # of each model
_BOTH = ("gind", "gind-published")


def shrink(sheet: Sheet, root: Path | None) -> Sheet:
    """GIND in both profiles and another system on one small dataset; without any cell if there is no such data.

    Runs that take turns have a process each, so of these there are fewer.
    """
    dataset = _dataset(sheet.cells, root)
    own = sheet.cells[0].dataset
    cells = [cell for cell in sheet.cells if cell.dataset == own]
    beside = list(dict.fromkeys(cell.model for cell in cells if cell.model not in _BOTH))
    chosen: dict[Path, Cell] = {}
    for model in (*_BOTH, *beside[: 0 if sheet.turns else 1]) if dataset else ():
        mine = [cell for cell in cells if cell.model == model]
        candidates = dict.fromkeys(cell.variant for cell in mine if cell.choose)
        of_each = dict.fromkeys(cell.variant for cell in mine if cell.variant not in [*candidates][1:])  # one is enough
        variants = [*of_each][:_VARIANTS]
        splits = sorted({cell.split for cell in mine})[: 1 if sheet.turns else 2]
        for cell in mine:
            if cell.variant in variants and cell.split in splits:
                keys = tuple(sorted((dict(cell.keys) | _KEYS).items()))
                # the name of the sheet, so that the cells of several sheets can run together
                home = cell.results or sheet.name
                small = dataclasses.replace(cell, dataset=dataset, keys=keys, seed=0, results=home)
                chosen.setdefault(sheet.path(small), small)
    return dataclasses.replace(sheet, cells=tuple(chosen.values()))


def _dataset(cells: Sequence[Cell], root: Path | None) -> str:
    """A small one of the sheet that is there, else one that comes with the package; none for graphs without data."""
    names = list(dict.fromkeys(cell.dataset for cell in cells))
    for name in names:
        entry = find(name)
        if not entry.files or (name in _SMALL and root is not None and on_disk(name, root)):
            return name
    return _EMBEDDED if find(names[0]).task == "node" else ""
