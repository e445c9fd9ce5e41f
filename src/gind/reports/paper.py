"""The tables of the paper, as data: paper.toml."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from gind.experiments.toml import parse_toml

__all__ = ["Paper", "PaperTable", "PaperValue", "load_paper"]

_VALUE = re.compile(r"(?P<mean>[\d,]+(\.\d+)?)( ± (?P<std>\d+(\.\d+)?))?")


@dataclasses.dataclass(frozen=True)
class PaperValue:
    """A value as it is printed, with its digits."""

    text: str
    mean: float
    std: float | None
    rerun: bool
    """marked * in the paper: run by its authors, not quoted from elsewhere"""

    def __str__(self) -> str:
        return self.text + "*" * self.rerun


@dataclasses.dataclass(frozen=True)
class PaperTable:
    """A table of the paper: rows by their printed names, and which datasets and systems of ours they are."""

    name: str
    label: str
    title: str
    unit: str
    columns: tuple[str, ...]
    datasets: tuple[str, ...]
    """our dataset of each column; empty where columns are none"""
    rows: Mapping[str, tuple[PaperValue | None, ...]]
    beside: Mapping[str, str]
    """dataset of a column → another of ours to show next to it, which the paper does not have"""
    note: str
    epochs: int
    """that its times are of; 0 where it has none"""

    def compares(self, systems: Mapping[str, str]) -> bool:
        """Whether its rows are systems and its columns are datasets."""
        return bool(self.datasets) and set(self.rows) <= set(systems)

    def value(self, row: str, dataset: str) -> PaperValue | None:
        """What the paper has for a row on a dataset of ours, if anything."""
        return self.rows[row][self.datasets.index(dataset)] if row in self.rows and dataset in self.datasets else None


@dataclasses.dataclass(frozen=True)
class Paper:
    """All tables, in the paper's order."""

    tables: tuple[PaperTable, ...]
    systems: Mapping[str, str]
    """printed name → name of our model"""

    def compared(self) -> tuple[PaperTable, ...]:
        """The tables whose rows are systems and whose columns are datasets."""
        return tuple(table for table in self.tables if table.compares(self.systems))

    def models(self, table: PaperTable) -> dict[str, str]:
        """Name of our model → row of the table, in its order."""
        return {self.systems[row]: row for row in table.rows}


@functools.cache
def load_paper() -> Paper:
    """paper.toml."""
    file = resources.files("gind.reports").joinpath("paper.toml")
    content = parse_toml(file.read_text(encoding="utf-8"), "paper.toml")
    systems = content.pop("systems")
    return Paper(tuple(_table(name, table) for name, table in content.items()), systems)


def _table(name: str, content: Mapping[str, Any]) -> PaperTable:
    columns = tuple(content["columns"])
    rows = {}
    for printed, texts in content["rows"].items():
        assert len(texts) == len(columns), f"paper.toml: {name}, row {printed}"
        rows[printed.rstrip("*")] = tuple(_value(text, printed.endswith("*")) for text in texts)
    return PaperTable(
        name=name,
        label=content["label"],
        title=content["title"],
        unit=content["unit"],
        columns=columns,
        datasets=tuple(content.get("datasets", ())),
        rows=rows,
        beside=content.get("beside", {}),
        note=content.get("note", ""),
        epochs=content.get("epochs", 0),
    )


def _value(text: str, rerun: bool) -> PaperValue | None:
    if text == "-":
        return None
    match = _VALUE.fullmatch(text)
    assert match is not None, f"paper.toml: {text!r}"
    return PaperValue(
        text, float(match["mean"].replace(",", "")), None if match["std"] is None else float(match["std"]), rerun
    )
