"""What `gind reproduce` prints while runs are made."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from rich.console import Console
from rich.markup import escape

from gind.experiments import make_spec
from gind.experiments.ahead import Ahead
from gind.experiments.grid import Finished
from gind.experiments.sheet import Cell, Sheet

__all__ = ["Running"]

EVERY: Final = 60.0
"""seconds between two lines about runs that take turns, at least"""


class Running:
    """Lines about the `cells` of a sheet that are to be run, `jobs` at a time."""

    def __init__(self, console: Console, sheet: Sheet, cells: Sequence[Cell], results: Path, jobs: int) -> None:
        self._console, self._sheet, self._cells = console, sheet, cells
        self._jobs = 1 if sheet.turns else max(1, min(jobs, len(cells)))
        self._ahead = Ahead(sheet, cells, results, self._jobs)
        self._epochs = {cell: make_spec(cell.table).train.epochs for cell in cells} if sheet.turns else {}
        self._said = monotonic()

    def show(self, ended: Iterable[Finished]) -> int:
        """What is to come, then a line per cell as it ends, with the time that is left; how many failed."""
        total, failed = len(self._sheet.cells), 0
        there = total - len(self._cells)
        if self._cells:
            self._begin(there, total)
        done = there
        for finished in ended:
            done += 1
            there += finished.skipped  # another process was here
            failed += bool(finished.error)
            self._ahead.went(finished.cell, 1)
            mark = f"[red]{escape(finished.error)}[/]" if finished.error else "[green]done[/]"
            if not finished.skipped:
                self._say(f"{done}/{total}  {escape(str(finished.cell.place))}  {mark}{self._eta()}")
        self._say(f"{escape(self._sheet.title)}: {done - there - failed} done, {there} were there, {failed} failed.")
        return failed

    def epoch(self, cells: Sequence[Cell], epoch: int) -> None:
        """Of cells that take turns: how far they are, now and then."""
        for cell in cells:
            self._ahead.went(cell, min(epoch / self._epochs[cell], 0.999))  # it will say itself that it has ended
        if monotonic() - self._said >= EVERY:
            first, epochs = cells[0], max(self._epochs[cell] for cell in cells)
            seed = f" seed {first.seed}" if first.seed else ""
            self._say(f"{escape(first.dataset)} split {first.split}{seed}: epoch {epoch} of {epochs}{self._eta()}")

    def _begin(self, there: int, total: int) -> None:
        counts = f"{there} of {total} runs are there, {len(self._cells)} to run"
        if self._sheet.turns:
            systems = ", ".join(dict.fromkeys(cell.system for cell in self._cells))
            self._say(f"{counts}; on each split these take turns, epoch by epoch: {escape(systems)}")
        else:
            self._say(f"{counts}, {self._jobs} at a time")

    def _say(self, line: str) -> None:
        self._said = monotonic()
        self._console.print(line, highlight=False, soft_wrap=True)

    def _eta(self) -> str:
        """With what separates it from the rest of the line; nothing if nothing is known or left."""
        left = self._ahead.left()
        if not left:
            return ""
        return "  ETA under 1 min" if left < 60 else f"  ETA {left / 60:.0f} min"
