"""A block of cells in a sheet: which keys its runs have, and the name of each variant.

as = "laplacian"                    a variant: the same model with other keys, kept beside the plain one
set = { regularizer = "none" }      its keys
vary = { layers = [2, 4, 8] }       a variant for each value, named by it; of several keys, every combination in
                                    the order of the keys' names, the last of them fastest
choose = true                       its variants, and those of other such blocks, are candidates; the system
                                    MODEL+nested is, split by split, the one that validates best
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gind.experiments.keys import ConfigError

__all__ = ["Keys", "check_seeds", "flat", "nested", "variants"]

Keys = tuple[tuple[str, Any], ...]
_ALLOWED = frozenset({"datasets", "models", "splits", "set", "as", "vary", "results", "row", "seeds", "choose"})
_NEEDED = frozenset({"datasets", "models", "splits"})
_RUN = frozenset({"dataset", "split", "seed", "model", "model.name"})
_NAME = re.compile(r"[\w.+-]+", re.ASCII)


def _check(block: Any, where: object) -> None:
    """Refuse a block whose values are not of the kind that its keys need; the message names file and key."""
    if not isinstance(block, Mapping) or _NEEDED - set(block) or set(block) - _ALLOWED:
        optional = ", ".join(sorted(_ALLOWED - _NEEDED))
        raise ConfigError(f"{where}: [[cells]] needs datasets, models and splits, and may have {optional}.")
    for key in ("datasets", "models"):
        names = block[key]
        if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(f"{where}: {key} must be a list of names, got {names!r}.")
    for key in ("splits", "as", "results", "row"):
        if not isinstance(block.get(key, ""), str):
            raise ConfigError(f"{where}: {key} must be a text, got {block[key]!r}.")
    home = block.get("results", "")
    if home and (not _NAME.fullmatch(home) or home.startswith(".")):
        raise ConfigError(f"{where}: results must be the name of a sheet, got {home!r}.")
    if not isinstance(block.get("choose", False), bool):
        raise ConfigError(f"{where}: choose must be true or false, got {block['choose']!r}.")
    check_seeds(block.get("seeds", [0]), where)
    for key in ("set", "vary"):
        if not isinstance(block.get(key, {}), Mapping):
            raise ConfigError(f"{where}: {key} must be a table of keys, got {block[key]!r}.")
    fixed, varied = flat(block.get("set", {})), flat(block.get("vary", {}))
    for key, value in fixed:
        if not all(map(_is_plain, value if isinstance(value, tuple) else [value])):
            raise ConfigError(f"{where}: set.{key} must be a value or a list of values, got {value!r}.")
    for key, values in varied:
        if not isinstance(values, tuple) or not values or not all(map(_is_plain, values)):
            raise ConfigError(f"{where}: vary.{key} must be a list of values, which are no tables, got {values!r}.")
    _check_conflicts([key for key, _ in (*fixed, *varied)], where)


def check_seeds(seeds: Any, where: object) -> None:
    """Refuse what is no list of whole numbers >= 0."""
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise ConfigError(f"{where}: seeds must be a list of whole numbers >= 0, got {seeds!r}.")


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _check_conflicts(keys: Sequence[str], where: object) -> None:
    """A key is said once: not as a whole and in part, and not what the cell itself says."""
    for key in keys:
        if key in _RUN:
            raise ConfigError(f"{where}: {key} cannot be in set or vary. See datasets, models, splits and seeds.")
        if keys.count(key) > 1:
            raise ConfigError(f"{where}: {key} is in set and in vary. Leave one of them out.")
        for whole in keys:
            if key.startswith(f"{whole}."):
                raise ConfigError(f"{where}: {whole} and {key} exclude each other. Write {whole}.kind for its kind.")


def variants(block: Any, where: object) -> list[tuple[str, Keys]]:
    """Name and keys of each variant of a block, which is checked; the plain model has no name."""
    _check(block, where)
    name, keys = block.get("as", ""), dict(flat(block.get("set", {})))
    varied = flat(block.get("vary", {}))
    named = [
        (
            "-".join([*([name] if name else []), *map(str, chosen)]),
            tuple(sorted({**keys, **dict(zip((key for key, _ in varied), chosen, strict=True))}.items())),
        )
        for chosen in itertools.product(*(values for _, values in varied))
    ]
    for variant, _ in named:  # it becomes the name of a directory
        if variant and not _NAME.fullmatch(variant):
            raise ConfigError(f"{where}: a variant is named by letters, digits and . + - _ only, got {variant!r}.")
    return named


def flat(table: Mapping[str, Any]) -> Keys:
    """A nested table as dotted keys, so that it can be compared and hashed: adjoint.steps = 4."""
    return tuple(sorted(_leaves(table, "")))


def nested(keys: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The table of dotted keys."""
    table: dict[str, Any] = {}
    for name, value in keys:
        *path, last = name.split(".")
        inner = table
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return table


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, tuple(value) if isinstance(value, list) else value
