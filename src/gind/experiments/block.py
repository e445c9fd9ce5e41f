"""A block of cells in a sheet: which keys its runs have, and the name of each variant.

as = "laplacian"                    a variant: the same model with other keys, kept beside the plain one
set = { regularizer = "none" }      its keys
vary = { layers = [2, 4, 8] }       a variant for each value, named by it; the last key varies fastest
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gind.experiments.keys import ConfigError

__all__ = ["Keys", "flat", "nested", "variants"]

Keys = tuple[tuple[str, Any], ...]
_ALLOWED = frozenset({"datasets", "models", "splits", "set", "as", "vary", "results", "row", "seeds"})
_NEEDED = frozenset({"datasets", "models", "splits"})


def variants(block: Mapping[str, Any], where: object) -> list[tuple[str, Keys]]:
    """Name and keys of each variant of a block; the plain model has no name."""
    if _NEEDED - set(block) or set(block) - _ALLOWED:
        optional = ", ".join(sorted(_ALLOWED - _NEEDED))
        raise ConfigError(f"{where}: [[cells]] needs datasets, models and splits, and may have {optional}.")
    name, keys = block.get("as", ""), dict(flat(block.get("set", {})))
    varied = flat(block.get("vary", {}))
    if not all(isinstance(values, tuple) and values for _, values in varied):
        raise ConfigError(f"{where}: vary needs a list of values for each key.")
    return [
        (
            "-".join([*([name] if name else []), *map(str, chosen)]),
            tuple(sorted({**keys, **dict(zip((key for key, _ in varied), chosen, strict=True))}.items())),
        )
        for chosen in itertools.product(*(values for _, values in varied))
    ]


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
