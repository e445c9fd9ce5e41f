"""Ranges of a search as TOML has them: a list is a choice, a table with low and high a range.

hidden = [16, 32, 64]
lr = { low = 1e-3, high = 1e-1, log = true }
dropout = { low = 0.0, high = 0.9, step = 0.1 }
stop.tol = { low = 1e-6, high = 1e-3, log = true }
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gind.datasets.table import nearest
from gind.experiments import ConfigError, Spec

__all__ = ["Choice", "Parameter", "Range", "look_up", "make_space", "nested"]

_DIGITS = 4  # of a value drawn from a range without step: enough to train with, short enough to read
_FIELDS = ("low", "high", "log", "step")


@dataclasses.dataclass(frozen=True)
class Choice:
    """One of several values, each known by its JSON text."""

    values: Mapping[str, Any]

    def value(self, drawn: str) -> Any:
        """What a text stands for."""
        return self.values[drawn]

    def probes(self) -> tuple[Any, ...]:
        """The values that must be allowed for the whole parameter to be."""
        return tuple(self.values.values())

    def written(self) -> list[Any]:
        """As TOML has it."""
        return list(self.values.values())


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both drawn too; whole ones if `kind` is int."""

    kind: type[int] | type[float]
    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = None

    def value(self, drawn: float) -> int | float:
        """The number to train with: without the last digits, which mean nothing."""
        if self.kind is int:
            return int(drawn)
        rounded = float(f"{drawn:.{_DIGITS if self.step is None else 12}g}")
        return min(max(rounded, self.low), self.high)

    def probes(self) -> tuple[int | float, ...]:
        """The values that must be allowed for the whole parameter to be."""
        return (self.low, self.high)

    def written(self) -> dict[str, Any]:
        """As TOML has it, defaults included."""
        return {"low": self.low, "high": self.high, "log": self.log, "step": self.step}

    def holds(self, value: Any) -> bool:
        """Whether a value can be drawn."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        return self.step is None or _whole((value - self.low) / self.step)


Parameter = Choice | Range


def make_space(table: Mapping[str, Any], probe: Callable[[Mapping[str, Any]], Spec]) -> dict[str, Parameter]:
    """The parameters of a [search] table by key (`stop.tol` for a key below another).

    `probe` makes a Spec of values by key, or refuses: every end of a range and every choice is tried, all others at
    their first, so that a search cannot draw what a training would not take.
    """
    written = dict(_leaves(table))
    if not written:
        raise ConfigError("[search] is empty. Give a range such as lr = { low = 1e-3, high = 1e-1, log = true }.")
    first = {key: _first(key, value) for key, value in written.items()}
    spec = probe(first)
    space: dict[str, Parameter] = {}
    for key, value in written.items():
        parameter = _choice(key, value) if isinstance(value, list) else _range(key, value, look_up(spec, key))
        for each in parameter.probes():
            probe({**first, key: each})
        space[key] = parameter
    return space


def look_up(spec: Spec, key: str) -> Any:
    """The value of a key as TOML has it; None if there is none."""
    table = spec.table()
    first, *rest = key.split(".")
    value = next((table[part][first] for part in ("data", "model", "train") if first in table[part]), None)
    for part in rest:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted key as tables below tables."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key.split(".")
        table = result
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return result


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Ranges and choices with their dotted keys."""
    for name, value in table.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping) and not set(value) & {"low", "high"} and any(map(_is_written, value.values())):
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value


def _is_written(value: Any) -> bool:
    return isinstance(value, list | Mapping)


def _first(key: str, value: Any) -> Any:
    """The first value of what is written for a key; refused if it is neither range nor choice."""
    if isinstance(value, list):
        if len(value) < 2:
            raise ConfigError(f"search.{key} has {len(value)} choices. Give two or more, or put the key in [set].")
        return value[0]
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"search.{key} must be a list of choices or a table with low and high, got {value!r}. "
            "What is fixed belongs in [set]."
        )
    for name in value:
        if name not in _FIELDS:
            raise ConfigError(f"There is no key {name!r} in search.{key}. {nearest(name, _FIELDS)}")
    for name in ("low", "high"):
        if name not in value:
            raise ConfigError(f"search.{key} has no {name}.")
    return value["low"]


def _choice(key: str, values: list[Any]) -> Choice:
    named = {json.dumps(value): value for value in values}
    if len(named) < len(values):
        raise ConfigError(f"search.{key} has the same choice twice.")
    return Choice(named)


def _range(key: str, value: Mapping[str, Any], seen: Any) -> Range:
    """A range; `seen` is what the configuration made of its low end, so it has the type of the key."""
    kind = type(seen)
    if kind not in (int, float):
        raise ConfigError(f"search.{key} is no number and cannot have low and high. Give a list of choices.")
    word = "a whole number" if kind is int else "a finite number"
    for name in ("low", "high", "step"):
        number = value.get(name, value["low"])
        fits = isinstance(number, int if kind is int else int | float) and not isinstance(number, bool)
        if not fits or not math.isfinite(number):
            raise ConfigError(f"search.{key}.{name} must be {word}, got {number!r}.")
    low, high, log = kind(value["low"]), kind(value["high"]), value.get("log", False)
    step = None if "step" not in value else kind(value["step"])
    if not low < high:
        raise ConfigError(f"search.{key}: low must be below high, got {low} and {high}.")
    if not isinstance(log, bool):
        raise ConfigError(f"search.{key}.log must be true or false, got {log!r}.")
    if log and (low <= 0 or step is not None):
        raise ConfigError(f"search.{key}: log needs low > 0 and has no step.")
    if step is not None and not (step > 0 and _whole((high - low) / step)):
        raise ConfigError(f"search.{key}: high must be a whole number of steps (> 0) above low, got step = {step}.")
    return Range(kind, low, high, log, step)


def _whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-8
