"""Which settings ran: for each model what all its datasets share, and what differs between them."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from gind.datasets.table import DATASETS
from gind.experiments.setup import sample_model
from gind.reports.collect import Row
from gind.train import takes_start, unread_options

__all__ = ["ModelSettings", "model_settings"]


@dataclasses.dataclass(frozen=True)
class ModelSettings:
    """Settings of one model, as texts by key."""

    model: str
    shared: Mapping[str, str]
    """with the same value on every dataset"""
    keys: tuple[str, ...]
    """those that differ"""
    by_dataset: Mapping[str, Mapping[str, str]]
    """a dataset may lack a key, where it has no meaning"""


def model_settings(model: str, rows: Sequence[Row]) -> ModelSettings:
    """Of the rows of one model."""
    tables = {row.dataset: _settings(row) for row in rows}
    keys = tuple(dict.fromkeys(key for table in tables.values() for key in table))
    values = {key: {table.get(key) for table in tables.values()} for key in keys}
    first = next(iter(tables.values()))
    shared = {key: first[key] for key in keys if len(values[key]) == 1}
    differing = tuple(key for key in keys if key not in shared)
    by_dataset = {name: {key: table[key] for key in differing if key in table} for name, table in tables.items()}
    return ModelSettings(model, shared, differing, by_dataset)


def _settings(row: Row) -> dict[str, str]:
    """What had a meaning in the run: keys without a value, or that nothing reads, are left out."""
    model = sample_model(row.model.partition("+")[0], row.settings["model"])  # without its variant
    unread = {"name", *unread_options(model)}
    if not takes_start(model):
        unread.add("warm_start")
    entry = DATASETS.get(row.dataset)
    if entry is not None and entry.counts.graphs == 1:
        unread.add("batch_size")
    if row.protocol != "paper":  # as everywhere, where nothing else is said
        unread.add("protocol")
    sections = ("model", "data") if row.direct else ("model", "train", "data")
    return {
        key: _text(value)
        for section in sections
        for key, value in row.settings[section].items()
        if key not in unread and value != "none"
    }


def _text(value: Any) -> str:
    """`row (augmented true)` for an object of a kind with keys."""
    if isinstance(value, Mapping):
        keys = ", ".join(f"{key} {_text(item)}" for key, item in value.items() if key != "kind" and item != "none")
        kind = value.get("kind")
        return keys if kind is None else f"{kind} ({keys})" if keys else str(kind)
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)
