"""What of a sheet can be refused before anything runs, without reading data."""

import dataclasses
from collections.abc import Collection
from pathlib import Path

from gind.datasets import DataError, find
from gind.datasets.files import is_graph_path
from gind.datasets.load import count_splits, settings_of
from gind.errors import UserError
from gind.experiments.data import find_data, loading_options
from gind.experiments.keys import ConfigError
from gind.experiments.protocol import check_protocol
from gind.experiments.setup import check_task
from gind.experiments.sheet import Cell
from gind.experiments.spec import Spec, make_spec

__all__ = ["check_cells"]


def check_cells(cells: Collection[Cell], root: Path | None) -> None:
    """Refuse what would fail later, run by run: keys, what the table of datasets tells, data that is not to be had."""
    last: dict[Cell, int] = {}
    for cell in cells:
        alike = dataclasses.replace(cell, split=0, seed=0)
        last[alike] = max(cell.split, last.get(alike, 0))
    for cell, split in last.items():
        try:
            _check(make_spec(cell.table), split)
        except UserError as error:
            raise ConfigError(f"{cell.dataset}/{cell.system} cannot be run: {error}") from error
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        find_data(dataset, root)


def _check(spec: Spec, last: int) -> None:
    """Model, protocol, options and the last split against the table; of a graph of one's own only its files tell."""
    given = loading_options(spec.dataset, spec.data)
    if is_graph_path(spec.dataset):
        return
    entry = find(spec.dataset)
    check_task(spec.model, entry)
    check_protocol(entry, spec.data)
    settings_of(entry, {name: value for name, value in given.items() if name not in ("splits", "fractions", "folds")})
    count = count_splits(entry, given.get("splits", entry.splits), given.get("folds", 10))
    if count is not None and last >= count:
        raise DataError(f"{entry.name} has splits 0 to {count - 1}, there is no split {last}.")
