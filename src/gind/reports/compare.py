"""Rows beside the paper's values: what Markdown, the terminal and figures all show."""

import dataclasses
from collections.abc import Sequence

from gind.reports.collect import Collection, Row
from gind.reports.paper import Paper, PaperTable, PaperValue

__all__ = ["FAR", "Comparison", "Entry", "Line", "compare"]

FAR = 2.0  # points below the paper from which on a cell is marked
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Line:
    """A model on a dataset: what there is here, and what the paper has."""

    model: str
    dataset: str
    expected: int
    """runs that the sheet asks for; 0 if the model is not in it for this dataset"""
    row: Row | None
    paper: PaperValue | None
    beside: Row | None = None
    """the same model on the dataset next to it"""

    @property
    def difference(self) -> float | None:
        """Points above the paper; None if runs are missing."""
        if self.row is None or self.paper is None or self.row.runs < self.expected:
            return None
        return self.row.test.mean - self.paper.mean

    @property
    def below(self) -> bool:
        """Whether it is more than 2 points below the paper."""
        return self.difference is not None and self.difference < -FAR - _ROUNDING


@dataclasses.dataclass(frozen=True)
class Entry:
    """A dataset with its models, those of the paper's table first."""

    dataset: str
    title: str
    beside: str
    """name of the dataset next to it, or nothing"""
    lines: tuple[Line, ...]

    @property
    def majority(self) -> float | None:
        """Accuracy of the most frequent class, of the row with most runs."""
        return _majority([line.row for line in self.lines])

    @property
    def beside_majority(self) -> float | None:
        """The same of the dataset next to it."""
        return _majority([line.beside for line in self.lines])


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One table of the paper with the datasets that the sheet has; `table` is None for those in no table."""

    table: PaperTable | None
    entries: tuple[Entry, ...]

    @property
    def title(self) -> str:
        """Of the table."""
        return "Datasets that the paper does not have" if self.table is None else self.table.title


def compare(collection: Collection, paper: Paper) -> tuple[Comparison, ...]:
    """Every dataset of the sheet once, in the order of the paper's tables and then of the sheet."""
    left = dict.fromkeys(dataset for dataset, _ in collection.places)
    comparisons = []
    for table in paper.compared():
        entries = []
        for dataset, column in zip(table.datasets, table.columns, strict=True):
            if dataset in left:
                beside = table.beside.get(dataset, "")
                beside = beside if beside in left else ""
                title = dataset if table.columns == (column,) or dataset == column.lower() else f"{dataset} ({column})"
                entries.append(Entry(dataset, title, beside, _lines(collection, paper, table, dataset, beside)))
                left.pop(dataset)
                left.pop(beside, None)
        if entries:
            comparisons.append(Comparison(table, tuple(entries)))
    if left:
        entries = [Entry(name, name, "", _lines(collection, paper, None, name, "")) for name in left]
        comparisons.append(Comparison(None, tuple(entries)))
    return tuple(comparisons)


def _lines(
    collection: Collection, paper: Paper, table: PaperTable | None, dataset: str, beside: str
) -> tuple[Line, ...]:
    printed = {} if table is None else paper.models(table)
    ours = [model for name, model in collection.places if name in (dataset, beside)]
    expected = collection.sheet.expected
    return tuple(
        Line(
            model=model,
            dataset=dataset,
            expected=expected.get((dataset, model), 0),
            row=collection.row(dataset, model),
            paper=None if table is None else table.value(printed.get(model, ""), dataset),
            beside=collection.row(beside, model) if beside else None,
        )
        for model in dict.fromkeys([*printed, *ours])
        if model in ours or (table is not None and table.value(printed[model], dataset) is not None)
    )


def _majority(rows: Sequence[Row | None]) -> float | None:
    there = [row for row in rows if row is not None and row.majority is not None]
    return max(there, key=lambda row: row.runs).majority if there else None
