"""What the commands print."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gind.certify import ModelCertificate
from gind.experiments import Outcome, Predictions, Spec
from gind.experiments.keys import plain
from gind.experiments.models import KINDS
from gind.experiments.run import versions
from gind.experiments.spec import keys_by_section

__all__ = [
    "announce",
    "certificate",
    "check",
    "datasets",
    "doctor",
    "evaluation",
    "keys",
    "predictions",
    "results",
]


def announce(console: Console, spec: Spec, directory: Path) -> None:
    """The line before a training."""
    console.print(
        f"[bold]{spec.model}[/] on [bold]{escape(spec.dataset)}[/], split {spec.split}, seed {spec.seed} → "
        f"{escape(str(directory))}",
        highlight=False,
        soft_wrap=True,
    )


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
            f"{report['validation'][metric]:.4f}",
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
    console.print(f"Use it: gind predict {escape(str(place))}", soft_wrap=True, highlight=False)


def certificate(console: Console, certified: ModelCertificate | None) -> None:
    """The certificate of a pass, layer by layer."""
    if certified is None:
        console.print("No certificate: this model has no equilibrium.")
        return
    for number, layer in enumerate(certified.layers, 1):
        if len(certified.layers) > 1:
            console.print(f"Layer {number}", highlight=False)
        console.print(str(layer), highlight=False, markup=False, soft_wrap=True)
    if not certified.layers or not certified.proven:
        console.print(
            f"Residual {certified.residual:.3e}, tolerance {certified.tolerance:.0e}: "
            f"{'reached' if certified.reached else 'NOT reached'}. No bound: the map has no energy.",
            highlight=False,
        )


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
    if made.certificate is not None:
        console.print(
            f"residual {made.certificate.residual:.3e}, distance to the equilibrium ≤ {made.certificate.bound:.3e}"
        )


def keys(console: Console, model: str) -> None:
    """All keys with default and choices."""
    for section, entries in keys_by_section(model).items():
        table = Table("key", "default", "values", title=section, title_justify="left")
        for name, key in entries.items():
            default = "" if key.required else json.dumps(plain(key.default, KINDS))
            table.add_row(name, escape(default), escape(_values(key.type)))
        console.print(table)


def _values(kind: Any) -> str:
    import typing

    if kind in KINDS:
        return " | ".join(KINDS[kind])
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        return " | ".join(map(str, arguments))
    if typing.get_origin(kind) is tuple:
        return f"[{', '.join(map(_values, arguments))}]"
    if arguments:
        return " | ".join(_values(argument) for argument in arguments)
    return "none" if kind is type(None) else str(getattr(kind, "__name__", kind)).lower()


def doctor(console: Console, data: Path | None) -> None:
    """Versions, threads, kernels, caches, data."""
    import numba
    import torch

    from gind.datasets import DATASETS, on_disk
    from gind.kernels.op import implementation

    table = Table.grid(padding=(0, 2))
    for name, version in versions().items():
        table.add_row(name, version)
    table.add_row("processors", str(os.cpu_count()))
    table.add_row("numba threads", str(numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    table.add_row("kernels on cpu", implementation("cpu"))
    if torch.cuda.is_available():
        table.add_row("kernels on cuda", implementation("cuda"))
    table.add_row("kernel cache", _kernel_cache())
    found = [name for name, entry in DATASETS.items() if entry.files and data is not None and on_disk(name, data)]
    where = (
        f"{data}: {', '.join(found) or 'none of the known datasets'}" if data else "none given (--data or GIND_DATA)"
    )
    table.add_row("data", escape(where))
    table.add_row("without files", ", ".join(name for name, entry in DATASETS.items() if not entry.files))
    console.print(table, highlight=False)


def _kernel_cache() -> str:
    from gind.kernels import cpu

    path = Path(getattr(cpu, "__file__", "")).parent / "__pycache__"
    return str(path) if os.access(path, os.W_OK) else "not writable: kernels are compiled anew in every process"


def datasets(console: Console, data: Path | None, as_json: bool) -> None:
    """The table of datasets."""
    from gind.datasets import DATASETS, on_disk
    from gind.datasets.table import measured

    rows = []
    for name, entry in DATASETS.items():
        there = "built in" if not entry.files else "yes" if data is not None and on_disk(name, data) else "no"
        counts, seen = entry.counts, measured().get(name)
        rows.append(
            {
                "name": name,
                "task": entry.task,
                "metric": entry.metric,
                "graphs": counts.graphs,
                "nodes": counts.nodes,
                "edges": counts.edges,
                "features": counts.features,
                "classes": counts.classes,
                "homophily": None if seen is None else seen.homophily,
                "duplicates": None if seen is None else seen.duplicates,
                "splits": entry.splits,
                "on disk": there,
                "defects": list(entry.defects),
            }
        )
    if as_json:
        console.print_json(json.dumps(rows))
        return
    table = Table(
        "name",
        "task",
        "metric",
        "graphs",
        "nodes",
        "edges",
        "features",
        "classes",
        "homophily",
        "dup.",
        "splits",
        "on disk",
    )
    for row in rows:
        cells = [row[key] for key in ("name", "task", "metric", "graphs", "nodes", "edges", "features", "classes")]
        homophily = "-" if row["homophily"] is None else f"{row['homophily']:.3f}"
        duplicates = "-" if row["duplicates"] is None else str(row["duplicates"])
        mark = " [yellow]![/]" if row["defects"] else ""
        table.add_row(
            f"{cells[0]}{mark}", *map(str, cells[1:]), homophily, duplicates, str(row["splits"]), str(row["on disk"])
        )
    console.print(table)
    console.print(
        "edges: columns of edge_index; dup.: nodes that share label and neighbors with another; "
        "[yellow]![/]: known defects, see gind datasets check NAME",
        highlight=False,
    )


def check(console: Console, name: str, data: Path | None) -> bool:
    """Files, counts and defects of a dataset; whether all is well."""
    from gind.datasets import DataError, find
    from gind.datasets import check as check_dataset

    if data is None and find(name).files:
        raise DataError("Where are the files? Pass --data DIR or set GIND_DATA.")
    report = check_dataset(name, data or Path())
    colors = {"same": "green", "differs": "red", "missing": "red", "unknown": "yellow"}
    for file in report.files:
        console.print(f"[{colors[file.state]}]{file.state:>8}[/]  {escape(file.path)}", highlight=False, soft_wrap=True)
    for count in report.counts:
        same = count.expected == count.measured
        console.print(
            f"[{'green' if same else 'red'}]{'same' if same else 'differs':>8}[/]  {count.name}: {count.measured}"
            + ("" if same else f", expected {count.expected}"),
            highlight=False,
        )
    for defect in report.defects:
        console.print(f"[yellow] warning[/]  {escape(defect)}", highlight=False, soft_wrap=True)
    return report.ok
