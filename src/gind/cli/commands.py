"""What the commands do, on top of `gind.experiments`."""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import typer
from rich.console import Console

from gind.cli import inventory, screens
from gind.cli.bench import BenchRequest
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
from gind.experiments.artefact import BESIDE, CHECKPOINT, CONFIG, PREDICTIONS, TENSORBOARD, read_config
from gind.experiments.data import file_stem
from gind.experiments.spec import keys_by_section
from gind.experiments.toml import read_toml
from gind.kernels.allocator import keep_memory
from gind.train import Observer, TensorBoard, Watched, show_progress

if TYPE_CHECKING:  # draws figures, which no other command needs
    from gind.cli.reproduction import ReportRequest, ReproduceRequest

__all__ = [
    "Request",
    "bench",
    "certify",
    "check",
    "datasets",
    "doctor",
    "evaluate",
    "keys",
    "models",
    "predict",
    "report",
    "reproduce",
    "train",
    "tune",
    "use_threads",
]

console = Console()


@dataclasses.dataclass(frozen=True)
class Request:
    """What `gind train` was asked for; of the keys, later parts go over earlier ones: config, --set, options."""

    options: Mapping[str, Any]
    """dataset, split and seed, as far as they were given"""
    model: str | None
    config: Path | None
    assignments: tuple[str, ...]
    data: Path | None
    out: Path | None
    beside: tuple[str, ...]
    resume: bool
    overwrite: bool
    checkpoint_every: int
    tensorboard: bool
    quiet: bool
    threads: int | None

    def spec(self) -> Spec:
        """The run that was asked for; a resume that names nothing but --out takes the run's own config."""
        changes = [*map(assignment, self.assignments), self.options]
        if self.model is not None:
            changes.append({"model": {"name": self.model}})
        config = self.config
        if self.resume and config is None and self.out is not None and "dataset" not in self.options:
            config = self.out / CONFIG
            if not config.exists():
                raise ConfigError(f"No dataset is named, and {self.out} is not the directory of a run.")
        table = {} if config is None else read_toml(config)
        table.pop("trained", None)
        if self.model is not None and _model_of(table) != self.model:
            table.pop("model", None)  # keys of another model
        return make_spec(
            combine([table, *changes]), use_defaults=config is None or config != (self.out or Path()) / CONFIG
        )

    def beside_spec(self, spec: Spec, model: str) -> Spec:
        """Another model on the same data and split, with its own defaults and what --set says of training."""
        table = spec.table()
        kept = {key: table[key] for key in ("dataset", "split", "seed", "data")}
        train = keys_by_section(spec.model)["train"]
        changes = [change for change in map(assignment, self.assignments) if set(change) <= {*train, "train"}]
        config = {} if self.config is None else read_toml(self.config)
        config = {key: value for key, value in config.items() if key in {*train, "train"}}
        return make_spec(combine([kept, config, *changes, {"model": {"name": model}}]))


def train(request: Request) -> None:
    """Train, and say what came out and where it lies."""
    if request.resume and request.overwrite:
        raise ConfigError("--resume and --overwrite exclude each other.")
    keep_memory()
    spec = request.spec()
    directory = request.out or _directory(spec)
    others = []
    for model in request.beside:
        place = directory / BESIDE / model
        started = request.resume and (place / CONFIG).exists()
        others.append((read_config(place)[0] if started else request.beside_spec(spec, model), place))
    outcomes = [_train(request, each, place) for each, place in [(spec, directory), *others]]
    screens.results(console, outcomes)


def _train(request: Request, spec: Spec, directory: Path) -> Outcome:
    screens.announce(console, spec, directory)
    watched: Watched = "test" if spec.data.protocol == "paper" else "val"
    observers: list[Observer] = [] if request.quiet else [show_progress(console, watched)]
    if request.tensorboard:
        observers.append(TensorBoard(directory / TENSORBOARD, watched))
    outcome = run(
        spec,
        directory,
        root=request.data,
        resume=request.resume,
        overwrite=request.overwrite,
        checkpoint_every=request.checkpoint_every,
        observers=observers,
        threads=request.threads,
    )
    if not outcome.fit.finished:
        _stopped(outcome)
    return outcome


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
    path = directory / PREDICTIONS if out is None else out
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


def reproduce(request: "ReproduceRequest") -> None:
    """Run an item or a sheet; exit code 1 if a cell failed."""
    if not request.run(console):
        raise typer.Exit(1)


def report(request: "ReportRequest") -> None:
    """Write pages, or print tables."""
    request.run(console)


def tune(path: Path, choice: tuple[tuple[str, ...], int | None], data: Path | None, out: Path, jobs: int) -> None:
    """Search settings, dataset by dataset; exit code 1 if there are none for one, or after Ctrl-C."""
    from gind.cli import tuning  # imports Optuna, an optional package
    from gind.tuning import read_search
    from gind.tuning import tune as open_search

    search = read_search(path).select(*choice)
    found = []
    try:
        for dataset in search.datasets:
            with open_search(search, dataset, out, root=data, jobs=jobs) as opened:
                found.append(tuning.search(console, opened))
    except KeyboardInterrupt:
        console.print("Stopped. The same command goes on.", highlight=False)
        raise typer.Exit(1) from None
    if not all(found):
        raise typer.Exit(1)


def bench(request: BenchRequest) -> None:
    """Measure or read what was measured, show it, and write what was asked for."""
    request.run(console)


def keys(model: str, dataset: str | None) -> None:
    """Print the keys of a model, of training and of data."""
    inventory.keys(console, model, dataset)


def models() -> None:
    """Print the models."""
    inventory.models(console)


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


def use_threads(threads: int | None) -> None:
    """Compute with so many threads; None leaves it to PyTorch."""
    if threads is not None:
        torch.set_num_threads(threads)


def _model_of(table: Mapping[str, Any]) -> object:
    model = table.get("model")
    return model.get("name") if isinstance(model, Mapping) else model


def _directory(spec: Spec) -> Path:
    return Path("runs") / f"{file_stem(spec.dataset)}-{spec.model}-{spec.split}-{spec.seed}"


def _stopped(outcome: Outcome) -> None:
    epochs = len(outcome.fit.history)
    saved = outcome.directory / CHECKPOINT
    message = f"Stopped by {outcome.fit.stopped_by} after epoch {epochs}; saved in {saved}."
    console.print(message, soft_wrap=True, markup=False, highlight=False)
    advice = f"Go on with: gind train --resume --out {shlex.quote(str(outcome.directory))}"
    console.print(advice, soft_wrap=True, markup=False, highlight=False)
    raise typer.Exit(1)
