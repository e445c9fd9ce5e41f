"""Every report.json of a sheet, checked."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gind.errors import UserError
from gind.experiments.artefact import REPORT
from gind.experiments.sheet import Cell, Sheet
from gind.experiments.spec import as_now

__all__ = ["Report", "ReportError", "Solved", "Timing", "read_report", "read_reports"]


class ReportError(UserError, ValueError):
    """A file that is not the report it should be."""


@dataclasses.dataclass(frozen=True)
class Solved:
    """The certificate of a run; infinite where nothing finite was measured or proven."""

    residual: float
    bound: float
    tolerance: float
    reached: bool


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of a system that took turns with others."""

    preprocessing: float
    training: float
    """of all epochs"""
    epochs: int

    @property
    def total(self) -> float:
        """Both."""
        return self.preprocessing + self.training

    def over(self, epochs: int) -> "Timing":
        """The same, if its epochs were so many."""
        return Timing(self.preprocessing, self.training * epochs / self.epochs, epochs)


@dataclasses.dataclass(frozen=True)
class Report:
    """What tables need of one run. Metrics are shares from 0 to 1."""

    cell: Cell
    metric: str
    test: float
    """of the weights that were kept"""
    validation: float | None
    """None in the paper's protocol, where nothing validates"""
    validation_loss: float | None
    """likewise; infinite if it was not finite"""
    curve: tuple[float, ...]
    """test metric by epoch, in the paper's protocol only"""
    majority: float | None
    solved: Solved | None
    unsolved: int
    """solves in training that missed their tolerance"""
    direct: bool
    """fit in closed form: the keys of training say nothing"""
    seconds: float
    epochs: int
    versions: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Any]]
    """data, model and train keys; the same for every split and seed of a cell"""
    dirichlet: float | None
    """Dirichlet energy of the predictions; runs of earlier versions have none"""
    timing: Timing | None


def read_reports(sheet: Sheet, results: Path) -> tuple[dict[Cell, Report], tuple[ReportError, ...]]:
    """What is there of a sheet, and why the rest of the files are no reports of it."""
    reports: dict[Cell, Report] = {}
    refused = []
    for cell in sheet.cells:
        path = results / sheet.path(cell) / REPORT
        try:
            if path.exists():
                reports[cell] = read_report(path, cell, timed=sheet.turns)
        except ReportError as error:
            refused.append(error)
    return reports, tuple(refused)


def read_report(path: Path, cell: Cell, *, timed: bool = False) -> Report:
    """The report of `cell` at `path`; refused in one line if it is broken, of another run, or lacks its times."""
    try:
        report = _parse(json.loads(path.read_text(encoding="utf-8")), cell)
        if timed and report.timing is None:
            why = "this is the report of a run that did not take turns"
            raise ReportError(f"{why}. Move or delete it; gind reproduce runs what is missing.")
        return report
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror or error}.") from error
    except json.JSONDecodeError as error:
        raise ReportError(f"{path} is not valid JSON: {error}. Delete it and run the sheet again.") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"{path} is not JSON. Delete it and run the sheet again.") from error
    except ReportError as error:
        raise ReportError(f"{path}: {error}") from error


def _parse(content: Any, cell: Cell) -> Report:
    report = _mapping(content, "the report")
    config = _mapping(report.get("config"), "config")
    mismatch = cell.mismatch(report)
    if mismatch:
        raise ReportError(f"{mismatch}. Move or delete it; gind reproduce runs what is missing.")
    test = _mapping(report.get("test"), "test")
    metrics = [name for name in test if name != "loss"]
    if len(metrics) != 1:
        raise ReportError(f"test must have one metric beside its loss, got {', '.join(metrics) or 'none'}.")
    (metric,) = metrics
    training = _mapping(report.get("training"), "training")
    majority = report.get("majority")
    paper = cell.protocol == "paper"
    return Report(
        cell=cell,
        metric=metric,
        test=_share(test[metric], f"test.{metric}"),
        validation=None if paper else _validation(report.get("validation"), metric),
        validation_loss=None if paper else _loss(report.get("validation")),
        curve=_curve(report.get("curve")) if paper else (),
        majority=None if majority is None else _share(majority, "majority"),
        solved=_solved(report.get("certificate")),
        unsolved=int(_number(training.get("unsolved"), "training.unsolved")),
        direct=training.get("stopped_by") == "fit_directly",
        seconds=_number(report.get("seconds"), "seconds"),
        epochs=int(_number(training.get("epochs"), "training.epochs")),
        versions={str(k): str(v) for k, v in _mapping(report.get("versions"), "versions").items()},
        dirichlet=None if (energy := report.get("dirichlet_energy")) is None else _number(energy, "dirichlet_energy"),
        timing=_timing(report.get("timing"), training.get("epochs")),
        settings={
            name: as_now(cell.model, name, _mapping(config.get(name), f"config.{name}"))
            for name in ("data", "model", "train")
        },
    )


def _validation(content: Any, metric: str) -> float:
    return _share(_mapping(content, "validation").get(metric), f"validation.{metric}")


def _loss(content: Any) -> float:
    # a loss that is not finite is null in a report, and systems without epochs have none
    loss = _mapping(content, "validation").get("loss")
    return math.inf if loss is None else _number(loss, "validation.loss")


def _curve(content: Any) -> tuple[float, ...]:
    if not isinstance(content, list) or not content:
        raise ReportError(
            f"curve must be a list of test metrics by epoch, got {content!r:.40}. Delete the file and run the sheet "
            "again."
        )
    return tuple(_share(value, f"curve[{number}]") for number, value in enumerate(content))


def _solved(content: Any) -> Solved | None:
    if content is None:
        return None
    certificate = _mapping(content, "certificate")
    # a number that is not finite is null in a report
    residual, bound = (
        math.inf if certificate.get(name, math.nan) is None else _number(certificate.get(name), f"certificate.{name}")
        for name in ("residual", "bound")
    )
    reached = certificate.get("reached")
    if not isinstance(reached, bool):
        raise ReportError(f"certificate.reached must be true or false, got {reached!r}.")
    return Solved(residual, bound, _number(certificate.get("tolerance"), "certificate.tolerance"), reached)


def _timing(content: Any, epochs: Any) -> Timing | None:
    if content is None:
        return None
    timing = _mapping(content, "timing")
    preprocessing, training = (_number(timing.get(name), f"timing.{name}") for name in ("preprocessing", "training"))
    count = int(_number(epochs, "training.epochs"))
    if count < 1:
        raise ReportError("training.epochs must be at least 1. Delete the file and run the sheet again.")
    return Timing(preprocessing, training, count)


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ReportError(f"{name} must be a table, got {value!r:.40}. Delete the file and run the sheet again.")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ReportError(
            f"{name} must be a number from 0, got {value!r:.40}. Delete the file and run the sheet again."
        )
    return float(value)


def _share(value: Any, name: str) -> float:
    number = _number(value, name)
    if number > 1:
        raise ReportError(f"{name} must be a share from 0 to 1, got {number:g}.")
    return number
