"""What `gind report` prints."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gind.experiments.protocol import CHOICES
from gind.reports import Collection, Comparison, Line, Row

__all__ = ["comparisons", "written"]


def comparisons(console: Console, collection: Collection, tables: Sequence[Comparison]) -> None:
    """A table of models by datasets for each table of the paper: here, then the paper in parentheses."""
    for comparison in tables:
        names = [name for entry in comparison.entries for name in (entry.dataset, entry.beside) if name]
        shown = Table(box=None, padding=(0, 1, 0, 0), title=escape(comparison.title), title_justify="left")
        for name in ("", *names):
            shown.add_column(escape(name), overflow="fold")
        cells: dict[str, dict[str, str]] = {}
        for entry in comparison.entries:
            for line in entry.lines:
                row = cells.setdefault(line.model, {})
                row[entry.dataset] = _cell(line)
                row[entry.beside] = "" if line.beside is None else _mean(line.beside)
        for model, row in cells.items():
            if any(row.get(name) for name in names):
                shown.add_row(escape(model), *(row.get(name, "") for name in names))
        console.print(shown, highlight=False)
    console.print(
        "Mean on test parts in percent, in parentheses the paper's; [red]▼[/]: more than 2 points below it; "
        "~: splits are missing; !: settings or versions differ between runs.",
        highlight=False,
    )
    protocols = {row.model: row.protocol for row in collection.rows if row.protocol != "honest"}
    for model, protocol in protocols.items():
        console.print(f"{escape(model)}: {CHOICES[protocol]}.", highlight=False)
    _missing(console, collection)


def written(console: Console, collection: Collection, path: Path) -> None:
    """Where the page is, and what is missing in it."""
    console.print(f"{len(collection.rows)} rows: {escape(str(path))}", highlight=False, soft_wrap=True)
    _missing(console, collection)


def _cell(line: Line) -> str:
    paper = "" if line.paper is None else f"({line.paper.mean:.1f})"
    here = "-" if line.row is None else _mean(line.row)
    return f"[red]{here}▼[/]{paper}" if line.below else f"{here} {paper}".strip()


def _mean(row: Row) -> str:
    return f"{row.test.mean:.1f}" + "~" * (row.runs < row.expected) + "!" * bool(row.notes)


def _missing(console: Console, collection: Collection) -> None:
    empty = len(collection.places) - len(collection.rows)
    console.print(
        f"{len(collection.missing)} of {len(collection.sheet.cells)} runs are missing; "
        f"{empty} of {len(collection.places)} cells are empty.",
        highlight=False,
    )
