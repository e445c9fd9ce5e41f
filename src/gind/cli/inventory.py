"""What there is: datasets, keys, and the machine."""

import dataclasses
import inspect
import json
import os
import typing
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gind.cache import cache_directory
from gind.datasets import DATASETS, DataError, Entry, find, on_disk
from gind.datasets import check as check_dataset
from gind.datasets.table import measured
from gind.experiments.made_with import versions
from gind.experiments.models import KINDS, MODELS, datasets_with_defaults
from gind.experiments.spec import default_values, keys_by_section
from gind.kernels.native.build import library
from gind.kernels.op import implementation, why_not

__all__ = ["check", "datasets", "doctor", "keys", "models"]


def models(console: Console) -> None:
    """Every model with its tasks and the first line of its description."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, entry in MODELS.items():
        file = inspect.getmodule(entry.build)
        about = entry.about or (getattr(file, "__doc__", None) or "").splitlines()[0]
        table.add_row(f"[bold]{name}", ", ".join(entry.tasks), escape(about))
    console.print(table, highlight=False)


def keys(console: Console, model: str, dataset: str | None) -> None:
    """All keys with choices, and the default that runs: on a dataset, or on all that have none of their own."""
    values = default_values(model, dataset)
    for section, entries in keys_by_section(model).items():
        table = Table(title=section, title_justify="left")
        table.add_column("key", no_wrap=True)
        table.add_column("default", overflow="fold")
        table.add_column("values")
        for name, key in entries.items():
            table.add_row(name, escape(json.dumps(values[section][name])), escape(_values(key.type)))
        console.print(table)
    own = datasets_with_defaults(model)
    if dataset is None and own:
        other = f"Other defaults on {', '.join(own)}: gind keys {model} --dataset NAME"
        console.print(other, highlight=False, soft_wrap=True)


def _values(kind: Any) -> str:
    if kind in KINDS:
        return " | ".join(KINDS[kind])
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        return " | ".join(map(str, arguments))
    if typing.get_origin(kind) is tuple:
        return f"[{', '.join(map(_values, arguments))}]"
    if dataclasses.is_dataclass(kind):
        return f"{{ {', '.join(field.name for field in dataclasses.fields(kind))} }}"
    if arguments:
        return " | ".join(_values(argument) for argument in arguments)
    return "none" if kind is type(None) else str(getattr(kind, "__name__", kind)).lower()


def doctor(console: Console, data: Path | None) -> None:
    """Versions, threads, kernels, caches, data."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # a path with a hole in it helps nobody
    for name, version in versions().items():
        table.add_row(name, version)
    table.add_row("processors", str(os.cpu_count()))
    table.add_row("kernels on cpu", implementation("cpu"))
    for module, reason in why_not("cpu").items():
        table.add_row("", escape(f"not {module}: {reason}"))
    if torch.cuda.is_available():
        table.add_row("kernels on cuda", implementation("cuda"))
    table.add_row("C loops", escape(_c_loops()))
    table.add_row("numba loops", escape(_numba_loops()))
    found = [name for name, entry in DATASETS.items() if entry.files and data is not None and on_disk(name, data)]
    where = (
        f"{data}: {', '.join(found) or 'none of the known datasets'}" if data else "none given (--data or GIND_DATA)"
    )
    table.add_row("data", escape(where))
    table.add_row("without files", ", ".join(name for name, entry in DATASETS.items() if not entry.files))
    console.print(table, highlight=False)


def _c_loops() -> str:
    """Where the edge loops in C are kept, or why they are not there."""
    try:
        library()
    except ImportError as error:
        return f"not there: {error}"
    return f"kept in {cache_directory('kernels')}"


def _numba_loops() -> str:
    """Where numba keeps what it compiles, or why it compiles nothing: it must have a place."""
    try:
        from gind.kernels import loops
        from gind.kernels.untyped import config
    except (ImportError, RuntimeError) as error:
        return f"not there: {error}"
    return f"kept in {loops.kept_in()}, {config.NUMBA_NUM_THREADS} threads"


def datasets(console: Console, data: Path | None, as_json: bool) -> None:
    """All datasets by task, with size, homophily and duplicates."""
    rows = [_row(entry, data) for entry in DATASETS.values()]
    if as_json:
        console.print_json(json.dumps(rows))
        return
    table = Table.grid(padding=(0, 1, 0, 0))
    titles = ["", "graphs", "nodes", "edges", "feat.", "cls", "hom.", "dup.", "disk"]
    for number in range(len(titles)):
        table.add_column(justify="left" if number in (0, 8) else "right", no_wrap=True)
    for task in ("node", "graph", "multilabel"):
        table.add_row(f"[bold]{task}", *(f"[dim]{title}" for title in titles[1:]))
        for row in (row for row in rows if row["task"] == task):
            mark = " [yellow]![/]" if row["defects"] else ""
            counts = [str(row[key]) for key in ("graphs", "nodes", "edges", "features", "classes")]
            homophily = "-" if row["homophily"] is None else f"{row['homophily']:.3f}"
            duplicates = "-" if row["duplicates"] is None else str(row["duplicates"])
            table.add_row(f"{row['name']}{mark}", *counts, homophily, duplicates, row["on disk"])
    console.print(table, highlight=False)
    console.print(
        "edges: columns of edge_index; hom.: share of edges within a class; dup.: nodes that share label and "
        "neighbors with another; [yellow]![/]: known defects, see gind datasets check NAME.",
        highlight=False,
    )


def _row(entry: Entry, data: Path | None) -> dict[str, Any]:
    counts, seen = entry.counts, measured().get(entry.name)
    there = "-" if not entry.files else "yes" if data is not None and on_disk(entry.name, data) else "no"
    return {
        "name": entry.name,
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


def check(console: Console, name: str, data: Path | None) -> bool:
    """Files, counts and defects of a dataset; whether all is well."""
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
    if report.problem:
        console.print(f"[red]   wrong[/]  {escape(report.problem)}", highlight=False, soft_wrap=True)
    for defect in report.defects:
        console.print(f"[yellow] warning[/]  {escape(defect)}", highlight=False, soft_wrap=True)
    return report.ok
