"""Settings chosen inside the training folds: of several candidates, split by split, the one that validates best.

    c* = argmax_c v_c,   reported: the test metric of c*

with v_c the validation metric of candidate c on that split; of equal ones the lowest validation loss, then the first
in the sheet. Candidates are ordinary runs with reports of their own, so nothing is chosen before all of them are there,
and what would have been chosen otherwise can be read too. No test label has a part in it.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from gind.experiments.sheet import Cell
from gind.reports.read import Report, ReportError

__all__ = ["choose", "chosen_how_often"]


def choose(candidates: Sequence[Cell], reports: Mapping[Cell, Report]) -> list[Report]:
    """The chosen report of every split and seed all of whose candidates are there."""
    runs: dict[tuple[int, int], list[Cell]] = {}
    for cell in candidates:
        runs.setdefault((cell.split, cell.seed), []).append(cell)
    metrics = sorted({reports[cell].metric for cell in candidates if cell in reports})
    if len(metrics) > 1:
        raise ReportError(f"Candidates of {candidates[0].chosen} have different metrics: {', '.join(metrics)}.")
    complete = [[reports[cell] for cell in cells] for cells in runs.values() if all(cell in reports for cell in cells)]
    return [max(there, key=_merit) for there in complete]  # the first of the best


def chosen_how_often(chosen: Sequence[Report]) -> str:
    """gind 6, gind+wide 4."""
    return ", ".join(f"{system} {count}" for system, count in Counter(one.cell.system for one in chosen).most_common())


def _merit(report: Report) -> tuple[float, float]:
    assert report.validation is not None, "a sheet refuses candidates without validation"
    return report.validation, -math.inf if report.validation_loss is None else -report.validation_loss
