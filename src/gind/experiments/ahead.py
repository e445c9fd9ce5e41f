"""How long what is left of a grid will take."""

import contextlib
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from gind.experiments.artefact import REPORT
from gind.experiments.sheet import Cell, Sheet

__all__ = ["Ahead"]


class Ahead:
    """The time that is left for `cells`, of which `jobs` run at a time.

    A run takes the median of the seconds in the reports of its system and dataset, of other splits and seeds; without
    any, the mean of what has run so far.
    """

    def __init__(self, sheet: Sheet, cells: Sequence[Cell], results: Path, jobs: int) -> None:
        self._folders = {cell: (results / sheet.path(cell)).parent for cell in cells}
        self._left = dict.fromkeys(cells, 1.0)
        self._seconds = {folder: _median(folder) for folder in self._folders.values()}
        self._jobs = jobs
        self._begun = monotonic()

    def went(self, cell: Cell, share: float) -> None:
        """This share of a run is done; with 1, all of it."""
        self._left[cell] = 1 - share
        if share == 1:
            self._seconds[self._folders[cell]] = _median(self._folders[cell])

    def left(self) -> float | None:
        """Seconds; None if nothing is known."""
        waiting = {cell: share for cell, share in self._left.items() if share}
        jobs = min(self._jobs, max(1, len(waiting)))
        done = len(self._left) - sum(waiting.values())
        mean = (monotonic() - self._begun) * self._jobs / done if done else None
        times = [(share, self._seconds[self._folders[cell]] or mean) for cell, share in waiting.items()]
        if any(seconds is None for _, seconds in times):
            return None
        return sum(share * (seconds or 0.0) for share, seconds in times) / jobs


def _median(folder: Path) -> float | None:
    """Of the seconds of all reports of a system on a dataset; what is no report says nothing."""
    found = []
    for path in folder.glob(f"*/{REPORT}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            found.append(float(json.loads(path.read_text(encoding="utf-8"))["seconds"]))
    found = [seconds for seconds in found if 0 <= seconds < math.inf]
    return statistics.median(found) if found else None
