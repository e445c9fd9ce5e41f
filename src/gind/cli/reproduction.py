"""`gind reproduce` and `gind report`: items of the paper, or sheets of one's own."""

import dataclasses
import itertools
import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from gind.cli import comparison, screens
from gind.cli.running import Running
from gind.experiments import ConfigError
from gind.experiments.artefact import REPORT
from gind.experiments.checks import check_cells
from gind.experiments.grid import run_grid
from gind.experiments.items import ITEMS, WITHOUT_RUNS, find_item, progress, read_item
from gind.experiments.quick import shrink
from gind.experiments.sheet import Sheet, parse_splits, read_sheet
from gind.experiments.turns import run_in_turns
from gind.files import write_atomically
from gind.reports import ReportError, collect, compare, load_paper, read_remarks, sheet_page
from gind.reports.figures import write_figures
from gind.reports.html import html_page
from gind.reports.ledger import Item, open_item, open_ledger
from gind.reports.ledger_page import item_page, item_section, results_page

__all__ = ["ReportRequest", "ReproduceRequest"]


@dataclasses.dataclass(frozen=True)
class ReproduceRequest:
    """What to run."""

    item: str | None
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    splits: str | None
    data: Path | None
    results: Path
    work: Path
    jobs: int
    quick: bool

    def run(self, console: Console) -> bool:
        """Run an item or a sheet, or everything in small; whether no cell failed. Without an item, list them."""
        self._check_selection()
        if self.item in WITHOUT_RUNS:
            console.print(f"There is nothing to run: gind report {self.item} shows it.", highlight=False)
            return True
        if self.quick:
            return self._quick(console)
        if self.item is None:
            _list(console, self.results)
            return True
        chosen = self._select(read_sheet(find_item(self.item)))
        failed = self._run(console, chosen, self.results, self.work)
        if self.item in ITEMS:
            shown = open_item(self.item, self.results, load_paper()).only(chosen.cells)
            console.print(Markdown(item_page(shown, {}, narrow=True)))
            screens.refused(console, _refused(shown))
        return not failed

    def _check_selection(self) -> None:
        """--dataset, --model and --splits are refused where all runs are wanted, or none."""
        if not self.datasets and not self.models and self.splits is None:
            return
        options = "--dataset, --model and --splits"
        if self.quick:
            raise ConfigError(f"--quick chooses its runs itself. Leave out {options}, or --quick.")
        if self.item is None:
            raise ConfigError(f"{options} are for the runs of an item: gind reproduce ITEM.")

    def _select(self, sheet: Sheet) -> Sheet:
        """The runs that are wanted; all systems of a split, where they take turns."""
        if sheet.turns and self.models:
            raise ConfigError(
                f"The systems of {sheet.name} take turns in one run, so that their times can be compared. "
                "Leave out --model."
            )
        splits = [] if self.splits is None else parse_splits(self.splits, "--splits: ")
        return sheet.select(self.datasets, self.models, splits)

    def _run(self, console: Console, sheet: Sheet, results: Path, work: Path) -> int:
        """Run what is missing of a sheet; how many failed."""
        missing = sheet.missing(results)
        check_cells(missing, self.data)
        if missing:
            _check_place(results, "--results")
            _check_place(work, "--work")
        shown, rest = Running(console, sheet, missing, results, self.jobs), dataclasses.replace(sheet, cells=missing)
        if sheet.turns:
            return shown.show(run_in_turns(rest, results, work, root=self.data, watch=shown.epoch))
        return shown.show(run_grid(rest, results, work, root=self.data, jobs=self.jobs))

    def _quick(self, console: Console) -> bool:
        """Every kind of item, small; nothing is kept."""
        if self.item is not None and self.item not in ITEMS:
            raise ConfigError(f"--quick is for the items of the paper, got {self.item!r}.")
        names = [self.item] if self.item is not None else list(ITEMS)
        sheets = {name: sheet for name in names if (sheet := read_item(name)) is not None}
        small = {name: shrink(sheet, self.data) for name, sheet in sheets.items()}
        with tempfile.TemporaryDirectory() as folder:
            results, work = Path(folder, "results"), Path(folder, "work")
            # one pool of processes for all items but those that take turns
            cells = {sheet.path(cell): cell for sheet in small.values() if not sheet.turns for cell in sheet.cells}
            pooled = Sheet("quick", "All items, small", tuple(cells.values()))
            timed = [sheet for sheet in small.values() if sheet.turns]
            failed = sum(self._run(console, sheet, results, work) for sheet in [pooled, *timed])
            items = [open_item(name, results, load_paper(), sheet) for name, sheet in small.items()]
            for item in items:
                if item.total:
                    console.print(Markdown("\n".join(item_section(item, {}, narrow=True))))
                else:
                    console.print(f"{item.name}: no small data is there, see --data.", highlight=False)
            html_page(items)
        return not failed


@dataclasses.dataclass(frozen=True)
class ReportRequest:
    """What to write or print."""

    item: str | None
    results: Path
    out: Path | None
    html: Path | None

    def run(self, console: Console) -> None:
        """The ledger, an item of it, or the page of a sheet."""
        for path in (self.out, self.html):
            if path is not None and not path.parent.is_dir():
                raise ConfigError(f"There is no directory {path.parent} to write {path.name} into. Make it first.")
        if self.item is not None and self.item not in ITEMS:
            self._sheet(console, find_item(self.item))
            return
        if self.item not in WITHOUT_RUNS and not any(self.results.glob(f"*/*/*/*/{REPORT}")):
            raise ConfigError(f"There is no report in {self.results}. Run gind reproduce ITEM first, or see --results.")
        paper = load_paper()
        items = open_ledger(self.results, paper) if self.item is None else (open_item(self.item, self.results, paper),)
        for refused in itertools.chain(*map(_refused, items)):
            raise refused
        if self.html is not None:
            _write(self.html, html_page(items))
            _written(console, self.html, items)
        out = self.out
        if out is None and self.html is None and self.item is None:
            out = Path("docs/results.md")
            out.parent.mkdir(exist_ok=True)
        if out is not None:
            figures = write_figures(items, out.parent / "assets" / "results")
            places = {name: Path(os.path.relpath(path, out.parent)).as_posix() for name, path in figures.items()}
            _write(out, results_page(items, places) if self.item is None else item_page(items[0], places))
            _written(console, out, items)
        elif self.html is None:
            console.print(item_page(items[0], {}), highlight=False, markup=False, soft_wrap=True)

    def _sheet(self, console: Console, path: Path) -> None:
        """The page of a sheet of one's own, or its tables printed."""
        if self.html is not None:
            raise ConfigError("--html is for the items of the paper; a sheet has a page in Markdown, --out.")
        sheet = read_sheet(path)
        collection, remarks = collect(sheet, self.results), read_remarks(path, sheet)
        if self.out is None:
            comparison.comparisons(console, collection, compare(collection, load_paper()))
        else:
            _write(self.out, sheet_page(collection, load_paper(), remarks))
            comparison.written(console, collection, self.out)


def _check_place(place: Path, option: str) -> None:
    """Refuse a directory that cannot be written, before hours of work have nowhere to go; it is not made."""
    try:
        with tempfile.TemporaryFile(dir=next(path for path in (place, *place.absolute().parents) if path.exists())):
            pass
    except OSError as error:
        message = f"{option} {place} cannot be written: {error.strerror or error}. Choose another directory."
        raise ConfigError(message) from error


def _refused(item: Item) -> tuple[ReportError, ...]:
    return () if item.collection is None else item.collection.refused


def _list(console: Console, results: Path) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, label in ITEMS.items():
        sheet = read_item(name)
        done, total = (progress(sheet, results), len(sheet.cells)) if sheet is not None else (0, 0)
        color = "green" if done == total else "yellow" if done else "dim"
        about = "nothing to run: gind report shows it" if sheet is None else sheet.title
        table.add_row(f"[bold]{name}", label or "ours", f"[{color}]{done}/{total}", escape(about))
    console.print(table, highlight=False)
    console.print("Runs that are there, of all. Run what is missing: gind reproduce ITEM", highlight=False)


def _write(path: Path, text: str) -> None:
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _written(console: Console, path: Path, items: tuple[Item, ...]) -> None:
    done, total = sum(item.done for item in items), sum(item.total for item in items)
    console.print(f"{done} of {total} runs are there: {escape(str(path))}", highlight=False, soft_wrap=True)
