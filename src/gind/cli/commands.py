"""What the commands do, on top of `gind.experiments`."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from gind.cli import inventory, screens
from gind.experiments import (
    ConfigError,
    Outcome,
    Spec,
    assignment,
    certify_run,
    combine,
    evaluate_run,
    load_artefact,
    make_spec,
    open_data,
    predict_run,
    run,
    write_predictions,
)
from gind.experiments.artefact import CHECKPOINT, CONFIG, read_config
from gind.experiments.toml import read_toml
from gind.train import Observer, TensorBoard, show_progress

__all__ = ["Request", "certify", "check", "datasets", "doctor", "evaluate", "keys", "predict", "train"]

console = Console()


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked for on the command line; later parts go over earlier ones: config, --set, options."""

    options: Mapping[str, Any]
    model: str | None
    config: Path | None
    assignments: tuple[str, ...]

    def spec(self, model: str | None = None) -> Spec:
        """The run, maybe with another model (whose keys then are its defaults)."""
        table = read_toml(self.config) if self.config is not None else {}
        table.pop("trained", None)
        tables = [table, *map(assignment, self.assignments), self.options]
        if model is not None:
            # keys of the other model's own section do not apply here
            kept = {key: value for key, value in combine([table]).items() if key not in ("model",)}
            own = [a for a in map(assignment, self.assignments) if set(a) <= {"train", "data"}]
            return make_spec(combine([kept, *own, self.options, {"model": {"name": model}}]))
        if self.model is not None:
            tables.append({"model": {"name": self.model}})
        return make_spec(combine(tables))


def train(
    request: Request,
    data: Path | None,
    out: Path | None,
    beside: tuple[str, ...],
    resume: bool,
    overwrite: bool,
    checkpoint_every: int,
    tensorboard: bool,
    quiet: bool,
    threads: int | None,
) -> None:
    """Train, and say what came out and where it lies."""
    if resume and overwrite:
        raise ConfigError("--resume and --overwrite exclude each other.")
    if resume and out is not None and not request.options.get("dataset") and request.config is None:
        spec = read_config(out)[0] if (out / CONFIG).exists() else request.spec()
        if request.assignments:
            spec = make_spec(combine([spec.table(), *map(assignment, request.assignments)]), use_defaults=False)
    else:
        spec = request.spec()
    directory = out or _directory(spec)
    outcomes = []
    for number, (name, each) in enumerate([(spec.model, spec), *((m, request.spec(m)) for m in beside)]):
        place = directory if number == 0 else directory / "beside" / name
        screens.announce(console, each, place)
        observers: list[Observer] = [] if quiet else [show_progress(console)]
        if tensorboard:
            observers.append(TensorBoard(place / "tensorboard"))
        outcome = run(
            each,
            place,
            root=data,
            resume=resume,
            overwrite=overwrite,
            checkpoint_every=checkpoint_every,
            observers=observers,
            threads=threads,
        )
        if not outcome.fit.finished:
            _stopped(outcome)
        outcomes.append(outcome)
    screens.results(console, outcomes)


def evaluate(directory: Path, dataset: str | None, data: Path | None, split: int | None, as_json: bool) -> None:
    """Print the metric on each part."""
    artefact = load_artefact(directory)
    loaded = open_data(artefact, dataset, data, labels=True)
    result = evaluate_run(artefact, loaded, artefact.spec.split if split is None else split)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        screens.evaluation(console, result, loaded.metric)


def predict(directory: Path, dataset: str | None, data: Path | None, out: Path | None) -> None:
    """Write predictions as CSV."""
    artefact = load_artefact(directory)
    predictions = predict_run(artefact, open_data(artefact, dataset, data, labels=False))
    path = directory / "predictions.csv" if out is None else out
    write_predictions(path, predictions)
    screens.predictions(console, predictions, path)


def certify(directory: Path, dataset: str | None, data: Path | None, as_json: bool) -> None:
    """Print the certificate; exit code 1 if it does not hold."""
    artefact = load_artefact(directory)
    certificate, table = certify_run(artefact, open_data(artefact, dataset, data, labels=False))
    if as_json:
        typer.echo(json.dumps(table, indent=2))
    else:
        screens.certificate(console, certificate)
    if certificate is not None and not certificate.reached:
        raise typer.Exit(1)


def keys(model: str) -> None:
    """Print the keys of a model, of training and of data."""
    inventory.keys(console, model)


def doctor(data: Path | None) -> None:
    """Print what there is."""
    inventory.doctor(console, data)


def datasets(data: Path | None, as_json: bool) -> None:
    """Print the table of datasets."""
    inventory.datasets(console, data, as_json)


def check(name: str, data: Path | None) -> None:
    """Print what is right and wrong with a dataset; exit code 1 if something is wrong."""
    if not inventory.check(console, name, data):
        raise typer.Exit(1)


def _directory(spec: Spec) -> Path:
    name = re.sub(r"[^\w.-]+", "-", Path(spec.dataset).resolve().name if Path(spec.dataset).exists() else spec.dataset)
    return Path("runs") / f"{name.lower()}-{spec.model}-{spec.split}-{spec.seed}"


def _stopped(outcome: Outcome) -> None:
    epochs = len(outcome.fit.history)
    saved = outcome.directory / CHECKPOINT
    console.print(f"Stopped by {outcome.fit.stopped_by} after epoch {epochs}; saved in {saved}.", soft_wrap=True)
    console.print(f"Go on with: gind train --resume --out {outcome.directory}", soft_wrap=True)
    raise typer.Exit(1)
