"""What the tests of reports share: report files with chosen numbers, and a small sheet over them."""

import copy
import json
from pathlib import Path
from typing import Any

from gind.experiments.sheet import Cell, Sheet
from gind.experiments.spec import make_spec

__all__ = ["CERTIFICATE", "content", "sheet_of", "write_report", "write_sheet"]

CERTIFICATE = {
    "residual": 9e-5,
    "bound": 0.02,
    "tolerance": 1e-4,
    "reached": True,
    "proven": True,
    "norm_K": [2.0],
    "smoothness": [5.0],
}

_CONTENT: dict[str, Any] = {
    "test": {"accuracy": 0.5, "loss": 1.0},
    "validation": {"accuracy": 0.6, "loss": 1.0},
    "majority": 0.4,
    "certificate": None,
    "training": {"epochs": 10, "best_epoch": 5, "stopped_by": "patience", "unsolved": 0, "parameters": 7},
    "seconds": 2.0,
    "versions": {"gind": "0.2.0", "torch": "2.13.0"},
    "config": {
        "data": {"features": "none"},
        "model": {"hidden": 32, "dropout": 0.5},
        "train": {"lr": 0.01, "implicit_lr": 0.001, "batch_size": 32, "schedule": {"kind": "constant", "warmup": 0}},
    },
}


def content(cell: Cell, **changes: Any) -> dict[str, Any]:
    """A report; `test=0.7` is the share that is right, `model={...}` and `train={...}` are settings."""
    report = copy.deepcopy(_CONTENT)
    report |= {"dataset": cell.dataset, "model": cell.model, "split": cell.split, "seed": cell.seed}
    report["config"] |= {"dataset": cell.dataset, "split": cell.split, "seed": cell.seed}
    if cell.keys:  # a report has the keys of its cell
        report["config"] |= make_spec(cell.table).table()
    for name in ("test", "validation"):
        if isinstance(changes.get(name), float):
            report[name]["accuracy"] = changes.pop(name)
    for section in ("model", "train"):
        report["config"][section] |= changes.pop(section, {})
    for section in ("training", "versions"):
        report[section] |= changes.pop(section, {})
    return report | changes


def write_report(results: Path, cell: Cell, *, sheet: str = "s", **changes: Any) -> Path:
    """A report at its place."""
    path = results / sheet / cell.place / "report.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content(cell, **changes)), encoding="utf-8")
    return path


def sheet_of(*cells: Cell, name: str = "s") -> Sheet:
    """A sheet of these cells."""
    return Sheet(name, "A sheet", cells)


def write_sheet(folder: Path, datasets: list[str], models: list[str], splits: str = "0-2") -> Path:
    """A sheet as a file, s.toml."""
    path = folder / "s.toml"
    path.write_text(
        f'title = "A sheet"\n[[cells]]\ndatasets = {json.dumps(datasets)}\nmodels = {json.dumps(models)}\n'
        f'splits = "{splits}"\n'
    )
    return path
