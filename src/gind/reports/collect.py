"""The reports of a sheet as rows, one for each dataset and system (a model, or a variant of it).

results/<sheet>/<dataset>/<system>/<split>-<seed>/report.json → Row
"""

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gind.experiments.artefact import REPORT
from gind.experiments.protocol import CHOICES, FOLDS, LAST, best_epoch
from gind.experiments.sheet import NESTED, Cell, Sheet
from gind.reports.choose import choose, chosen_how_often
from gind.reports.read import Report, ReportError, Solved, Timing, read_reports
from gind.text import are

__all__ = ["Collection", "Convergence", "Row", "Single", "Statistic", "collect"]


@dataclasses.dataclass(frozen=True)
class Statistic:
    """Mean and sample standard deviation (over n - 1), in percent; one value has no deviation."""

    mean: float
    std: float | None

    @classmethod
    def of(cls, shares: Sequence[float]) -> "Statistic":
        """Of shares from 0 to 1."""
        values = 100 * np.asarray(shares, dtype=np.float64)
        return cls(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None)


@dataclasses.dataclass(frozen=True)
class Convergence:
    """How well the equilibria were reached: the worst of all runs of a row."""

    residual: float
    bound: float | None
    """largest bound of the distance to the equilibrium, of the runs that have a finite one"""
    proven: int
    """runs that have"""
    tolerance: float
    reached: int
    """runs whose test pass reached its tolerance"""
    runs: int
    unsolved: int
    """solves in training, of all runs, that missed their tolerance"""


@dataclasses.dataclass(frozen=True)
class Single:
    """One run of a row; in the paper's protocol at the epoch that all runs of the row choose together."""

    split: int
    seed: int
    test: float
    """percent"""
    seconds: float
    """without preprocessing, where the run took turns with others; else all"""
    epochs: int


@dataclasses.dataclass(frozen=True)
class Row:
    """A system on a dataset, over the runs that are there."""

    dataset: str
    model: str
    """with its variant: the name of the system"""
    metric: str
    test: Statistic
    validation: Statistic | None
    """None in the paper's protocol, where nothing validates"""
    majority: float | None
    """accuracy in percent of the most frequent class of the training part, mean over the runs"""
    runs: int
    splits: int
    expected: int
    """runs that the sheet asks for"""
    convergence: Convergence | None
    direct: bool
    """fit in closed form, without epochs"""
    settings: Mapping[str, Mapping[str, Any]]
    """of the first run"""
    singles: tuple[Single, ...]
    """by split and seed"""
    dirichlet: float | None
    """mean Dirichlet energy of the predictions, where the runs have it"""
    timing: Timing | None
    """of the first run, where systems took turns"""
    protocol: str = "honest"
    """what chose the epochs, see `gind.experiments.protocol`"""
    folds: int = 0
    """in the paper's protocol: how many different splits it needs"""
    chosen: str = ""
    """where settings were chosen split by split: which candidates, and how often"""
    last: "Row | None" = None
    """in the paper's protocol: the same runs, read at their last epoch"""
    mixed: tuple[str, ...] = ()
    """settings that differ between the runs, and should not"""
    notes: tuple[str, ...] = ()
    """what a reader must know before trusting the numbers"""

    @property
    def seconds_per_run(self) -> float:
        """The median: a machine that was busy or asleep during one run does not count."""
        return statistics.median(single.seconds for single in self.singles)

    @property
    def seconds_per_epoch(self) -> float | None:
        """The median over runs; None without epochs."""
        return None if self.direct else statistics.median(one.seconds / one.epochs for one in self.singles)


@dataclasses.dataclass(frozen=True)
class Collection:
    """What there is of a sheet."""

    sheet: Sheet
    rows: tuple[Row, ...]
    """in the order of the sheet, then what is chosen"""
    missing: tuple[Cell, ...]
    strangers: int
    """reports below the results of the sheet that it does not name; they are in no row"""
    versions: tuple[tuple[Mapping[str, str], int], ...]
    """what the runs were made with, and how many of them"""
    commits: Mapping[Path, str]
    """the commit that made each report, by its place below the results; empty where it does not say"""
    seconds: float = 0.0
    """of all runs together"""
    refused: tuple[ReportError, ...] = ()
    """why files that are there are no reports of the sheet; their runs are missing"""

    @property
    def places(self) -> dict[tuple[str, str], tuple[Cell, ...]]:
        """The runs of every dataset and system of the sheet, then the candidates of what is chosen."""
        cells: dict[tuple[str, str], tuple[Cell, ...]] = {}
        for cell in self.sheet.cells:
            place = (cell.dataset, cell.system)
            cells[place] = (*cells.get(place, ()), cell)
        return cells | self.sheet.choices

    def row(self, dataset: str, model: str) -> Row | None:
        """The row of a system on a dataset, if it has a run."""
        return next((row for row in self.rows if (row.dataset, row.model) == (dataset, model)), None)


def collect(sheet: Sheet, results: Path, *, empty: bool = False) -> Collection:
    """Read what is there; refused if there is nothing, or if a report is broken or of another run, unless `empty`."""
    root = results / sheet.name
    reports, refused = read_reports(sheet, results)
    if refused and not empty:
        raise refused[0]
    if not reports and not empty:
        raise ReportError(
            f"There is no report of the sheet {sheet.name} in {root}. Run gind reproduce, or see --results."
        )
    strangers = len(set(root.glob(f"*/*/*/{REPORT}")) - {results / sheet.path(cell) / REPORT for cell in sheet.cells})
    commits = {sheet.path(cell): report.versions.get("commit", "") for cell, report in reports.items()}
    missing = tuple(cell for cell in sheet.cells if cell not in reports)
    versions = _versions([*reports.values()])
    seconds = math.fsum(report.seconds for report in reports.values())
    rows, unfit = _rows(sheet, reports)
    if unfit and not empty:
        raise unfit[0]
    return Collection(sheet, rows, missing, strangers, versions, commits, seconds, (*refused, *unfit))


def _rows(sheet: Sheet, reports: Mapping[Cell, Report]) -> tuple[tuple[Row, ...], tuple[ReportError, ...]]:
    """What can be summed up, and why the rest cannot."""
    by_place: dict[tuple[str, str], list[Report]] = {}
    for cell, report in reports.items():
        by_place.setdefault((cell.dataset, cell.system), []).append(report)
    expected = sheet.expected
    rows, unfit = [], []
    for place in expected:
        try:
            rows += [_row(by_place[place], expected[place])] if place in by_place else []
        except ReportError as error:
            unfit.append(error)
    for place, candidates in sheet.choices.items():
        chosen = choose(candidates, reports)
        if chosen:
            row, how = _row(chosen, expected[place]), chosen_how_often(chosen)
            notes = _versions_differ([reports[cell] for cell in candidates if cell in reports])
            rows.append(dataclasses.replace(row, model=place[1], protocol=NESTED, chosen=how, notes=notes))
    return tuple(rows), tuple(unfit)


def _row(reports: Sequence[Report], expected: int, protocol: str = "") -> Row:
    """Read by a protocol, that of the runs unless another is given."""
    # the sheet may list splits in any order; sums of floats depend on it
    reports = sorted(reports, key=lambda report: (report.cell.split, report.cell.seed))
    first = reports[0]
    metrics = sorted({report.metric for report in reports})
    if len(metrics) > 1:
        raise ReportError(
            f"The reports of {first.cell.system} on {first.cell.dataset} have different metrics: {', '.join(metrics)}."
        )
    majority = [report.majority for report in reports if report.majority is not None]
    protocol = protocol or first.cell.protocol
    tests, folds, about = _tests(reports, protocol)
    validations = [report.validation for report in reports if report.validation is not None]
    return Row(
        dataset=first.cell.dataset,
        model=first.cell.system,
        metric=first.metric,
        test=Statistic.of(tests),
        validation=Statistic.of(validations) if validations else None,
        majority=Statistic.of(majority).mean if majority else None,
        runs=len(reports),
        splits=len({report.cell.split for report in reports}),
        expected=expected,
        convergence=_convergence(reports),
        direct=first.direct,
        settings=first.settings,
        singles=tuple(
            Single(
                report.cell.split,
                report.cell.seed,
                100 * test,
                report.seconds if report.timing is None else report.timing.training,
                report.epochs,
            )
            for report, test in zip(reports, tests, strict=True)
        ),
        dirichlet=_mean([report.dirichlet for report in reports]),
        timing=first.timing,
        protocol=protocol,
        folds=folds,
        last=_row(reports, expected, LAST) if protocol == "paper" else None,
        mixed=(mixed := _mixed(reports)),
        notes=(*about, *_settings_differ(mixed), *_versions_differ(reports)),
    )


def _tests(reports: Sequence[Report], protocol: str) -> tuple[list[float], int, tuple[str, ...]]:
    """The test metric of each run; of curves also the folds that they need, and what to know about it."""
    first = reports[0]
    if protocol not in ("paper", LAST):
        return [report.test for report in reports], 0, ()
    lengths = sorted({len(report.curve) for report in reports})
    if len(lengths) > 1:
        raise ReportError(
            f"The curves of {first.cell.system} on {first.cell.dataset} have {lengths[0]} to {lengths[-1]} epochs, so "
            "they have no mean. Delete those of the wrong length and run the sheet again."
        )
    epoch = lengths[0] if protocol == LAST else best_epoch([report.curve for report in reports])
    folds = first.settings["data"].get("folds")
    folds = folds if isinstance(folds, int) else FOLDS
    there = len({report.cell.split for report in reports})
    about = [f"{CHOICES[protocol]} (epoch {epoch} of {lengths[0]})"]
    about += [f"{there} of {folds} folds {are(there)} there"] if there < folds else []
    return [report.curve[epoch - 1] for report in reports], folds, tuple(about)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def _convergence(reports: Sequence[Report]) -> Convergence | None:
    solved: list[Solved] = [report.solved for report in reports if report.solved is not None]
    if not solved:
        return None
    bounds = [one.bound for one in solved if math.isfinite(one.bound)]
    return Convergence(
        residual=max(one.residual for one in solved),
        bound=max(bounds, default=None),
        proven=len(bounds),
        tolerance=max(one.tolerance for one in solved),
        reached=sum(one.reached for one in solved),
        runs=len(solved),
        unsolved=sum(report.unsolved for report in reports),
    )


def _mixed(reports: Sequence[Report]) -> tuple[str, ...]:
    """The settings that differ between the runs of a row."""
    first = reports[0].settings
    return tuple(
        key
        for section in first
        for key in sorted({key for report in reports for key in report.settings[section]})
        if any(report.settings[section].get(key) != first[section].get(key) for report in reports)
    )


def _settings_differ(mixed: Sequence[str]) -> tuple[str, ...]:
    return (f"settings differ between splits ({', '.join(mixed)})",) if mixed else ()


def _versions_differ(reports: Sequence[Report]) -> tuple[str, ...]:
    several = len({report.versions.get("gind") for report in reports}) > 1
    return ("versions of gind differ between runs",) if several else ()


def _versions(reports: Sequence[Report]) -> tuple[tuple[Mapping[str, str], int], ...]:
    counted = Counter(tuple(report.versions.items()) for report in reports)
    return tuple((dict(items), counted[items]) for items in sorted(counted))
