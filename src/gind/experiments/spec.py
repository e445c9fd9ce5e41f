"""`Spec`: one run in full, what config.toml holds.

dataset = "cora"
split = 0
seed = 0
[data]       how the data is prepared
[model]      name, and the model's own parameters
[train]      the fields of FitOptions
"""

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from gind.datasets.table import nearest
from gind.experiments.data import DataOptions, dataset_name
from gind.experiments.keys import ConfigError, Key, keys_of, parse, plain
from gind.experiments.models import KINDS, defaults, model_entry
from gind.experiments.toml import parse_value
from gind.train import FitOptions

__all__ = [
    "Spec",
    "as_now",
    "assignment",
    "default_values",
    "keys_by_section",
    "make_spec",
    "other_key",
    "readable_options",
]

_TOP = ("dataset", "split", "seed")
_SECTIONS = ("data", "model", "train")


@dataclasses.dataclass(frozen=True)
class Spec:
    """One run."""

    dataset: str
    split: int
    seed: int
    model: str
    model_options: Mapping[str, Any]
    """objects by key, defaults that were not touched left out"""
    data: DataOptions
    train: FitOptions

    def new_model(self, task: str, features: int, classes: int) -> nn.Module:
        """The model for data of this task and these widths, with random weights, in the precision of the data."""
        model = model_entry(self.model).for_data(task, features, classes, self.model_options)
        return model.double() if self.data.precision == "double" else model

    def table(self) -> dict[str, Any]:
        """Everything as TOML has it, defaults included; `make_spec` takes it back."""
        keys = model_entry(self.model).keys
        options = {name: self.model_options.get(name, key.default) for name, key in keys.items()}
        return {
            "dataset": self.dataset,
            "split": self.split,
            "seed": self.seed,
            "data": _plain(vars(self.data)),
            "model": {"name": self.model, **_plain(options)},
            "train": _plain(vars(self.train)),
        }


def make_spec(table: Mapping[str, Any], *, use_defaults: bool = True) -> Spec:
    """A checked Spec of a table; keys may also stand at the top, outside of their section."""
    name = _model_name(table)
    keys = keys_by_section(name)
    given = _sorted(table, keys)
    dataset = given["top"].get("dataset")
    if not isinstance(dataset, str):
        raise ConfigError("No dataset is named. Give its name or a directory.")
    asked = given["train"].get("patience", 0)
    if use_defaults:
        # a file of defaults may name any key; what the user says goes over it
        below = _sorted(defaults(name, dataset_name(dataset)), keys)
        given = {section: _merged(below[section], given[section]) for section in given}
    parsed = {
        section: {key: _value(keys[section][key], key, value) for key, value in given[section].items()}
        for section in _SECTIONS
    }
    if parsed["data"].get("protocol") == "paper":
        if asked != 0:
            raise ConfigError(f'protocol "paper" trains all epochs: patience must be 0, got {asked!r}. Leave it out.')
        parsed["train"]["patience"] = 0
    try:
        return Spec(
            dataset,
            _number("split", given["top"].get("split", 0)),
            _number("seed", given["top"].get("seed", 0)),
            name,
            parsed["model"],
            DataOptions(**parsed["data"]),
            FitOptions(**parsed["train"]),
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error


def other_key(table: Mapping[str, Any], given: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The first of the `given` keys of a run (`table`) that the config of a report has otherwise; nothing if none.

    A config of an earlier version lacks newer keys: what is their default now is what ran then.
    """
    spec = make_spec(table)
    wanted, keys = spec.table(), keys_by_section(spec.model)
    for section, values in _sorted(given, keys).items():
        for name, value in values.items():
            there = _as_now(name, keys[section][name], config.get(section))
            if not _agrees(value, wanted[section][name], there):
                return f"{name} is {there!r}, not {wanted[section][name]!r}"
    return ""


def as_now(model: str, section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A section of a report's config, with the defaults of today for keys that are newer than it."""
    return {**values, **{name: _as_now(name, key, values) for name, key in keys_by_section(model)[section].items()}}


def _as_now(name: str, key: Key, section: Any) -> Any:
    """The value of a key in a section of a config, with the defaults of today where it says nothing."""
    if not isinstance(section, Mapping) or name not in section:
        return plain(key.default, KINDS)
    try:
        return plain(_value(key, name, section[name]), KINDS)
    except ConfigError:  # an earlier way to write it, or a number that is not finite
        return section[name]


def _agrees(given: Any, wanted: Any, there: Any) -> bool:
    """Whether two values are the same, as far as they are given."""
    if isinstance(given, Mapping) and isinstance(wanted, Mapping) and isinstance(there, Mapping):
        return all(_agrees(value, wanted.get(key), there.get(key)) for key, value in given.items())
    # a number that is not finite is null in a report
    return bool(wanted == there or (there is None and isinstance(wanted, float) and not math.isfinite(wanted)))


def keys_by_section(model: str) -> dict[str, dict[str, Key]]:
    """All keys there are for a model."""
    return {"data": keys_of(DataOptions), "model": model_entry(model).keys, "train": keys_of(FitOptions)}


def default_values(model: str, dataset: str | None = None) -> dict[str, dict[str, Any]]:
    """What runs where nothing is set, by section and key, as TOML has it; None: a dataset without its own defaults."""
    keys = keys_by_section(model)
    below = _sorted(defaults(model, "" if dataset is None else dataset_name(dataset)), keys)
    return {
        section: {name: _as_now(name, key, below[section]) for name, key in entries.items()}
        for section, entries in keys.items()
    }


def readable_options(model: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The objects of a config's [model] section, without what no key can read: it may be of an earlier version."""
    options = {}
    for name, key in model_entry(model).keys.items():
        if name in values:
            with contextlib.suppress(ConfigError):
                options[name] = _value(key, name, values[name])
    return options


def assignment(text: str) -> dict[str, Any]:
    """`key=value` or `key.sub=value` as a nested table."""
    path, equals, value = text.partition("=")
    parts = [part.strip().replace("-", "_") for part in path.split(".")]
    if not equals or not all(parts):
        raise ConfigError(f"Expected key=value, got {text!r}.")
    table: Any = parse_value(value.strip())
    for part in reversed(parts):
        table = {part: table}
    return dict(table)


def combine(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Later tables over earlier ones, key by key."""
    result: dict[str, Any] = {}
    for table in tables:
        result = _merged(result, table)
    return result


def _model_name(table: Mapping[str, Any]) -> str:
    model = table.get("model", "gind")
    name = model.get("name", "gind") if isinstance(model, Mapping) else model
    if not isinstance(name, str):
        raise ConfigError(f"model.name must be a text, got {name!r}.")
    return name


def _sorted(table: Mapping[str, Any], keys: Mapping[str, Mapping[str, Key]]) -> dict[str, dict[str, Any]]:
    """Every key in its section; unknown ones refused with the nearest name."""
    given: dict[str, dict[str, Any]] = {section: {} for section in ("top", *_SECTIONS)}
    known = {*_TOP, *_SECTIONS, *(key for section in _SECTIONS for key in keys[section])}

    def place(key: str, value: Any, sections: Sequence[str]) -> None:
        home = next((section for section in sections if key in keys[section]), None)
        if home is None:
            among = known if len(sections) > 1 else set(keys[sections[0]])
            where = "" if len(sections) > 1 else f" in [{sections[0]}]"
            raise ConfigError(f"There is no key {key!r}{where}. {nearest(key, among)}")
        given[home] = _merged(given[home], {key: value})

    for key, value in table.items():
        if key in _TOP:
            given["top"][key] = value
        elif key in _SECTIONS and isinstance(value, Mapping):
            for inner, item in value.items():
                if (key, inner) != ("model", "name"):
                    place(inner, item, (key,))
        elif key != "model":
            place(key, value, _SECTIONS)
    return given


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`; tables are merged, unless the one above says another kind."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, str) and isinstance(value, Mapping) and "kind" not in value:
            old = {"kind": old}
        if (
            isinstance(old, Mapping)
            and isinstance(value, Mapping)
            and value.get("kind", old.get("kind")) == old.get("kind")
        ):
            result[key] = _merged(old, value)
        else:
            result[key] = value
    return result


def _value(key: Key, name: str, value: Any) -> Any:
    """The object of a value; a table that names no kind is of the default's kind (schedule.warmup = 5)."""
    default = plain(key.default, KINDS) if dataclasses.is_dataclass(key.default) else {}
    if isinstance(value, Mapping) and "kind" not in value and "kind" in default:
        value = {"kind": default["kind"], **value}
    return parse(name, key.type, value, KINDS)


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ConfigError(f"{name} must be a whole number >= 0 (and below 2^63), got {value!r}.")
    return value


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: plain(value, KINDS) for key, value in values.items()}
