"""A run: from a Spec to a directory with a trained, tested and certified model."""

import dataclasses
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import filelock
import torch
from torch import nn

from gind.certify import ModelCertificate, certify_model
from gind.datasets import Dataset, Split
from gind.equilibrium import ConvergenceError
from gind.errors import UserError
from gind.experiments.artefact import (
    BESIDE,
    CHECKPOINT,
    CONFIG,
    METRICS,
    PREDICTIONS,
    REPORT,
    TENSORBOARD,
    WEIGHTS,
    read_config,
    read_run,
    save_weights,
    write_config,
    write_json,
)
from gind.experiments.made_with import versions
from gind.experiments.protocol import DIGITS
from gind.experiments.setup import BATCH, set_up
from gind.experiments.smoothness import prediction_energy
from gind.experiments.spec import Spec
from gind.train import EpochRecord, FitReport, MetricsFile, Observer, Part, call, evaluate, fit, make_parts

__all__ = ["Outcome", "RunError", "certify_part", "run", "set_aside"]


class RunError(UserError, RuntimeError):
    """A run that cannot be begun or go on; the message says what to do."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run leaves: the report as written to report.json, and how training ended."""

    directory: Path
    report: dict[str, Any]
    fit: FitReport
    certificate: ModelCertificate | None


def run(
    spec: Spec,
    directory: str | Path,
    *,
    root: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_every: int = 10,
    observers: Sequence[Observer] = (),
    threads: int | None = None,
) -> Outcome:
    """Train, test and certify as `spec` says; everything that matters is in `directory` afterwards.

    With `resume` a run that was stopped goes on, to the same bits; one that had ended and shall be longer loses its
    weights and its report until it has ended again. After a signal the outcome is not `fit.finished` and there is no
    report. `threads` are those to compute with; None lets the size of the problem decide.
    """
    directory = Path(directory)
    ready = set_up(spec, root, test_curve=True)  # refuses before anything is written, or overwritten
    dataset, split, model = ready.dataset, ready.split, ready.model
    with _own(directory), ready.threads(threads):
        _enter(directory, spec, resume, overwrite)
        made_with = versions()  # before training: sources may change while it runs
        try:
            report = fit(
                model,
                ready.problem,
                options=spec.train,
                seed=spec.seed,
                checkpoint=directory / CHECKPOINT,
                checkpoint_every=checkpoint_every,
                resume=resume,
                observers=[
                    _Begin(directory, spec, dataset),
                    MetricsFile(directory / METRICS, ready.problem.watched),
                    *observers,
                ],
            )
        except (ConvergenceError, FloatingPointError) as error:
            raise RunError(str(error)) from error
        if not report.finished:
            return Outcome(directory, {}, report, None)
        save_weights(directory, model, spec.model, ready.statistics)
        certificate = certify_part(model, dataset, split)
        content = _report(spec, dataset, split, model, report, certificate, made_with)
        write_json(directory / REPORT, content)
    return Outcome(directory, content, report, certificate)


@dataclasses.dataclass(frozen=True)
class _Begin(Observer):
    """Writes config.toml when nothing can be refused any more, so a refused resume leaves a run as it was."""

    directory: Path
    spec: Spec
    dataset: Dataset

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        """If the training is longer or shorter than the one that is there, report and weights of that go first."""
        there = (self.directory / CONFIG).exists()
        if there and read_config(self.directory)[0].table() != self.spec.table():
            for name in (REPORT, WEIGHTS, PREDICTIONS):
                (self.directory / name).unlink(missing_ok=True)
        write_config(self.directory, self.spec, self.dataset)


def certify_part(model: nn.Module, dataset: Dataset, split: Split | None) -> ModelCertificate | None:
    """The certificate of the pass that predicts the test part, or everything if there is no split."""
    parts = whole_parts(dataset) if split is None or dataset.task == "node" else make_parts(dataset, split.test, BATCH)
    return certify_model(model, lambda: [call(model, part) for part in parts])


def whole_parts(dataset: Dataset) -> tuple[Part, ...]:
    """All the data, every row; nodes need no label."""
    if dataset.task == "node":
        (part,) = make_parts(dataset, torch.empty(0, dtype=torch.long), BATCH)
        return (dataclasses.replace(part, rows=None),)
    return make_parts(dataset, torch.arange(len(dataset.graphs)), BATCH)


@contextmanager
def _own(directory: Path) -> Iterator[None]:
    """The directory, for this process alone; a killed process holds nothing."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(directory / ".lock", timeout=0)
        lock.acquire()
    except filelock.Timeout as error:
        raise RunError(f"Another process is training in {directory}. Wait for it, or choose another --out.") from error
    except OSError as error:
        raise RunError(f"{directory} cannot be written: {error.strerror or error}. Choose another --out.") from error
    try:
        yield
    finally:
        lock.release()


def _enter(directory: Path, spec: Spec, resume: bool, overwrite: bool) -> None:
    """Make sure that nothing is lost and nothing is mixed up."""
    for leftover in directory.glob(".*.part"):
        leftover.unlink(missing_ok=True)
    if not (directory / CONFIG).exists():
        foreign = [name for name in (CHECKPOINT, REPORT, WEIGHTS, METRICS) if (directory / name).exists()]
        if foreign:
            raise RunError(f"{directory} has a {foreign[0]} but no {CONFIG}: it is no run. Choose another --out.")
        return
    if overwrite:
        read_run(directory)  # refuses what is no run
        for beside in (directory / BESIDE).glob("*/"):
            with _own(beside):  # refused while a process trains there
                pass
        for name in (BESIDE, TENSORBOARD):
            shutil.rmtree(directory / name, ignore_errors=True)
        for name in (PREDICTIONS, CHECKPOINT, REPORT, WEIGHTS, METRICS, CONFIG):
            (directory / name).unlink(missing_ok=True)
        return
    if not resume:
        raise RunError(
            f"{directory} holds a run already. Go on with --resume, replace it with --overwrite, or choose another "
            "--out."
        )
    earlier, _ = read_config(directory)
    changed = _difference(earlier.table(), spec.table())
    if changed:
        raise RunError(
            f"{directory} was started with other options ({changed}). Resume with the same, or choose another --out."
        )


def set_aside(directory: Path, *names: str) -> None:
    """Rename files that a run cannot go on from to NAME.damaged; refused while a process trains there."""
    if any((directory / name).exists() for name in names):
        with _own(directory):
            for name in names:
                with suppress(FileNotFoundError):
                    (directory / name).replace(directory / f"{name}.damaged")


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first key that differs, with both values; how long to train may."""
    for section in ("data", "model", "train"):
        for key, value in now[section].items():
            if before[section].get(key) != value and key not in ("epochs", "patience", "patience_counts"):
                return f"{key} was {before[section].get(key)!r}, is {value!r}"
    for key in ("dataset", "split", "seed"):
        if before[key] != now[key]:
            return f"{key} was {before[key]!r}, is {now[key]!r}"
    return ""


def _report(
    spec: Spec,
    dataset: Dataset,
    split: Split,
    model: nn.Module,
    trained: FitReport,
    certificate: ModelCertificate | None,
    made_with: dict[str, str],
) -> dict[str, Any]:
    test = None
    if len(split.test):
        test = evaluate(model, make_parts(dataset, split.test, BATCH), dataset.task, dataset.metric)
    chosen = trained.watched == "val"
    return {
        "dataset": dataset.name,
        "model": spec.model,
        "split": spec.split,
        "seed": spec.seed,
        "test": None if test is None else {dataset.metric: test.value, "loss": test.loss},
        "validation": {dataset.metric: trained.best_value, "loss": trained.best_loss} if chosen else None,
        "majority": _majority(dataset, split),
        "certificate": None if certificate is None else certificate_table(certificate),
        "dirichlet_energy": prediction_energy(model, whole_parts(dataset)[0]) if dataset.task == "node" else None,
        "training": {
            "epochs": len(trained.history),
            "best_epoch": trained.best_epoch,
            "stopped_by": trained.stopped_by,
            "unsolved": sum(record.open for record in trained.history),
            "parameters": sum(p.numel() for p in model.parameters()),
        },
        "seconds": trained.seconds,
        "versions": made_with,
        "config": spec.table(),
        # c_f of the paper's protocol
        **({} if chosen else {"curve": [round(record.val, DIGITS) for record in trained.history]}),
    }


def certificate_table(certificate: ModelCertificate) -> dict[str, Any]:
    """A certificate for JSON; a bound that is not proven is null."""
    return {
        "residual": certificate.residual,
        "bound": certificate.bound if math.isfinite(certificate.bound) else None,
        "tolerance": certificate.tolerance,
        "reached": certificate.reached,
        "proven": certificate.proven,
        "norm_K": [layer.norm_K for layer in certificate.layers],
        "smoothness": [float(layer.smoothness.max()) for layer in certificate.layers],
    }


def _majority(dataset: Dataset, split: Split) -> float | None:
    """Share of the test part that has the most frequent class of the training part."""
    if dataset.task == "multilabel" or not len(split.test):
        return None
    y = dataset.graphs[0].y if dataset.task == "node" else torch.cat([graph.y for graph in dataset.graphs])
    return float((y[split.test] == y[split.train].mode().values).double().mean())
