"""What the commands print."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gind.certify import ModelCertificate
from gind.experiments import Outcome, Predictions, Spec
from gind.experiments.setup import sample_model
from gind.train import IMPLICIT_OPTIONS, FitOptions, unread_options

__all__ = ["announce", "certificate", "evaluation", "predictions", "refused", "results"]

_SHOWN = 5  # of files that are no reports

_PAPER = """\
Protocol "paper": every graph outside of the test fold trains, none validates, and the test part is evaluated after \
every epoch. The report over all folds takes the epoch with the best mean test accuracy, so test labels choose it. The \
weights here are those of the last epoch."""


def announce(console: Console, spec: Spec, directory: Path) -> None:
    """The line before a training."""
    console.print(
        f"[bold]{spec.model}[/] on [bold]{escape(spec.dataset)}[/], split {spec.split}, seed {spec.seed} → "
        f"{escape(str(directory))}",
        highlight=False,
        soft_wrap=True,
    )
    if spec.data.protocol == "paper":
        console.print(f"[yellow]{_PAPER}[/]", highlight=False, soft_wrap=True)
    chosen = [name for name in IMPLICIT_OPTIONS if getattr(spec.train, name) != getattr(FitOptions(), name)]
    if chosen and unread_options(sample_model(spec.model, spec.table()["model"])):
        effect = f"without effect, {spec.model} has no parameters in that group of the optimizer."
        console.print(f"[yellow]{', '.join(chosen)}: {effect}[/]", highlight=False, soft_wrap=True)


def results(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Test metric of every model, the certificate of the first, and where everything lies."""
    first = outcomes[0].report
    metric = outcomes[0].fit.metric
    table = Table("model", f"test {metric}", f"validation {metric}", "epochs", "seconds", title=first["dataset"])
    for outcome in outcomes:
        report = outcome.report
        table.add_row(
            report["model"],
            "-" if report["test"] is None else f"{report['test'][metric]:.4f}",
            "-" if report["validation"] is None else f"{report['validation'][metric]:.4f}",
            str(report["training"]["epochs"]),
            f"{report['seconds']:.1f}",
        )
    if first["majority"] is not None and metric == "accuracy":
        table.add_row("[dim]majority class", f"[dim]{first['majority']:.4f}", *["[dim]-"] * 3)
    console.print(table)
    certificate(console, outcomes[0].certificate)
    unsolved = first["training"]["unsolved"]
    if unsolved:
        console.print(f"[yellow]{unsolved} solves in training did not reach their tolerance (metrics.jsonl: open).")
    place = outcomes[0].directory
    console.print(f"Weights, config and report: {escape(str(place))}", soft_wrap=True, highlight=False)
    advice = f"Use it: gind predict {shlex.quote(str(place))}"
    console.print(advice, soft_wrap=True, markup=False, highlight=False)


def certificate(console: Console, certified: ModelCertificate | None) -> None:
    """The certificate of a pass: of each layer with an energy, else what the solves say together."""
    if certified is None:
        console.print("No certificate: this model has no equilibrium.")
        return
    for number, layer in enumerate(certified.layers, 1):
        if len(certified.layers) > 1:
            console.print(f"Layer {number}", highlight=False)
        console.print(str(layer), highlight=False, markup=False, soft_wrap=True)
    if not certified.layers or not certified.proven:
        asked = f"tolerance {certified.tolerance:.0e}: {'reached' if certified.reached else 'NOT reached'}"
        console.print(
            f"Residual {certified.residual:.3e}, {asked if certified.tolerance else 'no tolerance asked'}; "
            f"{_distance(certified)}",
            highlight=False,
            soft_wrap=True,
        )


def _distance(certified: ModelCertificate) -> str:
    """How far the equilibrium may be, if anything is known about that."""
    if certified.proven:  # by an energy, or by a contraction
        return f"distance to the equilibrium ≤ {certified.bound:.3e}"
    return "no bound of the distance to the equilibrium: the map has no energy, nor is it known to be a contraction"


def evaluation(console: Console, result: Mapping[str, Any], metric: str) -> None:
    """Metric and loss on each part."""
    table = Table("part", metric, "loss", title=f"{result['dataset']}, split {result['split']}")
    for part in ("train", "val", "test"):
        if part in result:
            table.add_row(part, f"{result[part][metric]:.4f}", f"{result[part]['loss']:.4f}")
    console.print(table)


def predictions(console: Console, made: Predictions, path: Path) -> None:
    """How many, where, and how well certified."""
    console.print(f"{len(made.ids)} predictions: {escape(str(path))}", highlight=False, soft_wrap=True)
    if made.proven is not None:
        count = int(made.proven.sum())
        console.print(
            f"{count} of {len(made.ids)} labels are proven to be those of the exact equilibrium", highlight=False
        )
    if made.certificate is not None:
        console.print(
            f"residual {made.certificate.residual:.3e}, {_distance(made.certificate)}", highlight=False, soft_wrap=True
        )


def refused(console: Console, errors: Sequence[Exception]) -> None:
    """Files that are no reports, a line for each of the first."""
    for error in errors[:_SHOWN]:
        console.print(f"[yellow]Missing: {escape(str(error))}[/]", highlight=False, soft_wrap=True)
    if len(errors) > _SHOWN:
        console.print(f"[yellow]And {len(errors) - _SHOWN} more like these.[/]", highlight=False)
