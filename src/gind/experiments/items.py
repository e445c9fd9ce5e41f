"""Items of the paper by name: each table and figure that needs runs has a sheet of the same name.

The sheets lie in `experiments/` of a checkout, where they are edited; a wheel has them as `gind/experiments/sheets`.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import gind
from gind.datasets.table import nearest
from gind.experiments.keys import ConfigError
from gind.experiments.sheet import Sheet, read_sheet

__all__ = ["ITEMS", "WITHOUT_RUNS", "find_item", "progress", "read_item", "sheets"]

ITEMS: Mapping[str, str] = MappingProxyType(
    {
        "activation": "Figure 1",
        "heterophilic": "Table 1",
        "homophilic": "Table 2",
        "ppi": "Table 3",
        "graphs": "Table 4",
        "regularizers": "Table 5",
        "chains": "Figure 2",
        "chains-three": "",
        "training-time": "Table 6",
        "nonlinearity": "Table 7",
        "backprop-steps": "Figure 3",
        "statistics-nodes": "Table 8",
        "statistics-graphs": "Table 9",
        "oversmoothing": "",
        "solved": "",
    }
)
"""Name → number in the paper, in its order; what it does not have is without one."""

WITHOUT_RUNS = ("activation", "statistics-nodes", "statistics-graphs")
"""Items that need no sheet: nothing has to be run for them."""


def sheets() -> Path:
    """The directory with the sheets of this installation."""
    package = Path(gind.__file__).parent
    installed = package / "experiments" / "sheets"
    return installed if installed.is_dir() else package.parents[1] / "experiments"


def find_item(name: str) -> Path:
    """The sheet of an item, or a sheet of one's own by its path."""
    if name in WITHOUT_RUNS:
        raise ConfigError(f"There is nothing to run for {name}: gind report {name} shows it.")
    if name in ITEMS:
        path = sheets() / f"{name}.toml"
        if not path.exists():
            raise ConfigError(f"The sheet of {name} is not there: {path}.")
        return path
    if name.endswith(".toml") or "/" in name:
        return Path(name)
    raise ConfigError(f"There is no item {name!r}. {nearest(name, ITEMS)} The path of a sheet ends with .toml.")


def progress(sheet: Sheet, results: Path) -> int:
    """How many cells have a report."""
    return sum(sheet.done(cell, results) for cell in sheet.cells)


def read_item(name: str) -> Sheet | None:
    """The sheet of an item, if it is there."""
    path = sheets() / f"{name}.toml"
    return read_sheet(path) if path.exists() else None
