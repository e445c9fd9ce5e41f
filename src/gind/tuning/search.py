"""`Search`: what `gind tune` reads.

title = "GCN on WebKB"
datasets = ["texas", "wisconsin"]
model = "gcn"
splits = "0-2"            # the validation metric is averaged over these
trials = 30
seed = 0                  # of the search and of every training, optional
prune_after = 1           # splits that a trial has at least, optional
[set]                     # fixed keys, optional
epochs = 500
[search]                  # ranges and choices, see space.py
lr = { low = 1e-3, high = 1e-1, log = true }
hidden = [16, 32, 64]
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gind.datasets import DataError
from gind.datasets.table import nearest
from gind.experiments import ConfigError, Spec, combine, make_spec
from gind.experiments.data import dataset_name, file_stem
from gind.experiments.sheet import parse_splits
from gind.experiments.toml import read_toml
from gind.tuning.space import Parameter, Range, look_up, make_space, nested

__all__ = ["Search", "place_of", "read_search"]

_KEYS = ("title", "datasets", "model", "splits", "trials", "seed", "prune_after", "set", "search")
_ELSEWHERE = ("dataset", "split", "seed", "name")  # said at the top, for all trials alike


@dataclasses.dataclass(frozen=True)
class Search:
    """Which settings of a model to try on which datasets."""

    name: str
    title: str
    datasets: tuple[str, ...]
    model: str
    splits: tuple[int, ...]
    trials: int
    seed: int
    fixed: Mapping[str, Any]
    """the table [set]"""
    space: Mapping[str, Parameter]
    prune_after: int = 1
    """splits that a trial has before it may be pruned"""

    def select(self, datasets: Sequence[str], trials: int | None) -> "Search":
        """With these datasets alone (none: all), and another number of trials if there is one."""
        for name in datasets:
            if name not in self.datasets:
                raise ConfigError(f"{self.name} has no dataset {name!r}. {nearest(name, self.datasets)}")
        kept = tuple(name for name in self.datasets if not datasets or name in datasets)
        return dataclasses.replace(self, datasets=kept, trials=trials or self.trials)

    def spec(self, dataset: str, values: Mapping[str, Any], split: int | None = None) -> Spec:
        """The training of values by key on a split; without values, that of the defaults."""
        number = self.splits[0] if split is None else split
        return make_spec({**self.settings(dataset, values), "split": number})

    def settings(self, dataset: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """What `gind train --config` needs for the same training."""
        table = combine([self.fixed, nested(values)])
        return {"dataset": dataset, "seed": self.seed, **table, "model": {"name": self.model}}

    def default(self, dataset: str) -> dict[str, Any]:
        """The default values of the searched keys that have one."""
        spec = self.spec(dataset, {})
        found = {key: look_up(spec, key) for key in self.space}
        return {key: value for key, value in found.items() if value is not None}

    def default_draws(self, dataset: str) -> dict[str, Any]:
        """Of the defaults, those that lie in the space, as they would be drawn."""
        draws: dict[str, Any] = {}
        for key, default in self.default(dataset).items():
            parameter = self.space[key]
            if isinstance(parameter, Range):
                found = [default] if parameter.holds(default) else []
            else:
                found = [text for text, value in parameter.values.items() if self._means(dataset, key, value, default)]
            if found:
                draws[key] = found[0]
        return draws

    def _means(self, dataset: str, key: str, value: Any, default: Any) -> bool:
        """Whether a value, as it is written, is the default in other words ("row" is { kind = "row" })."""
        try:
            return bool(look_up(self.spec(dataset, {key: value}), key) == default)
        except ConfigError:  # allowed with the other searched keys only
            return False

    def identity(self, dataset: str) -> dict[str, Any]:
        """All that must not change while a search goes on, as JSON has it."""
        return {
            "search": {key: parameter.written() for key, parameter in self.space.items()},
            "splits": list(self.splits),
            "set": self.spec(dataset, {}).table(),
            # searches that were begun before it could be said have 1
            **({"prune_after": self.prune_after} if self.prune_after > 1 else {}),
        }


def read_search(path: Path) -> Search:
    """A search of a TOML file, checked against the keys of the model."""
    try:
        return _make_search(path.stem, read_toml(path))
    except (ConfigError, DataError) as error:
        message = str(error)
        raise ConfigError(message if str(path) in message else f"{path}: {message}") from error


def _make_search(name: str, table: Mapping[str, Any]) -> Search:
    for key in table:
        if key not in _KEYS:
            raise ConfigError(f"There is no key {key!r}. {nearest(key, _KEYS)}")
    for key in ("datasets", "model", "splits", "trials", "search"):
        if key not in table:
            raise ConfigError(f"{key} is missing.")
    datasets, model = table["datasets"], table["model"]
    if not isinstance(datasets, list) or not datasets or not all(isinstance(each, str) for each in datasets):
        raise ConfigError(f"datasets must be a list of names or paths, got {datasets!r}.")
    if not isinstance(model, str) or not isinstance(table["splits"], str):
        raise ConfigError("model and splits must be texts, such as model = 'gcn' and splits = '0-2'.")
    places = [place_of(each) for each in datasets]
    if len(set(places)) < len(places):
        raise ConfigError("Two datasets have the same name.")
    fixed, ranges = _section(table, "set"), _section(table, "search")
    search = Search(
        name,
        str(table.get("title", name)),
        tuple(datasets),
        model,
        tuple(dict.fromkeys(parse_splits(table["splits"]))),
        _count("trials", table["trials"], 1),
        _count("seed", table.get("seed", 0), 0),
        fixed,
        {},
        _count("prune_after", table.get("prune_after", 1), 1),
    )
    if search.prune_after > len(search.splits):
        raise ConfigError(f"prune_after = {search.prune_after}, but splits has {len(search.splits)}.")
    for dataset in datasets:
        dataset_name(dataset)  # refuses what is no dataset
        search.spec(dataset, {})
    spaces = [make_space(ranges, functools.partial(search.spec, dataset)) for dataset in datasets]
    for key in spaces[0]:
        if _has(fixed, key):
            raise ConfigError(f"{key} is both in [set] and in [search].")
    return dataclasses.replace(search, space=spaces[0])


def place_of(dataset: str) -> str:
    """A file name for a dataset, also for a path."""
    return file_stem(dataset)


def _has(table: Mapping[str, Any], key: str) -> bool:
    value: Any = table
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value is not None


def _section(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The keys of a table, which may also stand in tables [data], [model] and [train] below it."""
    section = table.get(name, {})
    if not isinstance(section, Mapping):
        raise ConfigError(f"{name} must be a table of keys, got {section!r}.")
    flat = {}
    for key, value in section.items():
        inner = value if key in ("data", "model", "train") and isinstance(value, Mapping) else {key: value}
        for each, item in inner.items():
            if each in _ELSEWHERE or (each == "model" and not isinstance(item, Mapping)):
                raise ConfigError(f"{each} is not a key for [{name}]: it stands at the top of the file.")
            flat[each] = item
    return flat


def _count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
        raise ConfigError(f"{name} must be a whole number >= {least} (and below 2^31), got {value!r}.")
    return value
