"""`load`: a name → its `Dataset`, from the user's directory, else from a download; nothing is written there."""

import os
from collections.abc import Mapping
from typing import Any, get_args

import torch
from torch import Tensor

from gind.datasets.check import refuse_strange_pickles
from gind.datasets.dataset import DataError, Dataset, Split
from gind.datasets.download import locate
from gind.datasets.entry import Entry, SplitKind
from gind.datasets.sources import Opened, read
from gind.datasets.splits import random_split, stratified_folds
from gind.datasets.table import find, nearest
from gind.features import csr

__all__ = ["count_splits", "load", "row_normalize", "settings_of"]


def load(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    splits: SplitKind | None = None,
    seed: int = 0,
    fractions: tuple[float, float, float] | None = None,
    folds: int = 10,
    num_random: int = 10,
    **options: object,
) -> Dataset:
    """The dataset `name` (see `DATASETS`), from `root` (default: GIND_DATA) or downloaded into GIND_CACHE.

    splits     "published", "random" or "kfold"; None: what is usual for the set
    seed       of random splits and folds; random split i is drawn with (seed, i)
    fractions  train, validation and test shares of random splits, or numbers of nodes; None: usual for the set
    options    `features="row"` divides each row by its sum; the others are of one set: see `Entry.options`
    """
    entry = find(name)
    settings = settings_of(entry, options)
    features = settings.pop("features")
    kind = entry.splits if splits is None else splits
    if kind not in get_args(SplitKind):
        raise DataError(f"There are no splits {kind!r}. {nearest(str(kind), get_args(SplitKind))}")
    base = locate(entry, root) if entry.files else None
    if base is not None and entry.source == "planetoid":
        refuse_strange_pickles(entry, base)
    opened = read(entry, base, settings)
    if features == "row":
        for data in opened.graphs:
            data.x = row_normalize(data.x)
    shares = entry.fractions if fractions is None else fractions
    chosen = _splits(entry, opened, kind, seed=seed, fractions=shares, folds=folds, num_random=num_random)
    return Dataset(entry.name, entry.task, entry.metric, opened.graphs, opened.classes, chosen)


def row_normalize(x: Tensor) -> Tensor:
    """Rows shifted to be nonnegative and divided by their sum, as PyG's `NormalizeFeatures`; sparse stays sparse.

    A sum below 1 divides by 1, so that a row of zeros stays one.
    """
    if x.layout != torch.sparse_csr:
        shifted = x - x.min()
        return shifted / shifted.sum(dim=1, keepdim=True).clamp(min=1)
    values, start = x.values(), x.crow_indices()
    if len(values) and float(values.min()) < 0:
        raise DataError("Features below 0 cannot be divided by their sum and stay sparse: use `features='raw'`.")
    row = torch.repeat_interleave(torch.arange(x.shape[0]), start.diff())
    total = torch.zeros(x.shape[0]).index_add_(0, row, values).clamp(min=1)
    return csr(start, x.col_indices(), values / total[row], (x.shape[0], x.shape[1]))


def settings_of(entry: Entry, options: Mapping[str, object]) -> dict[str, Any]:
    """The options of a set, with its defaults; refused if it does not take them."""
    known = {"features": "raw", **entry.options}
    for option in options:
        if option not in known:
            raise DataError(f"{entry.name} has no option {option!r}. {nearest(option, known)}")
    settings = {**known, **options}
    if settings["features"] not in ("raw", "row"):
        raise DataError(f"`features` must be 'raw' or 'row', got {settings['features']!r}.")
    return settings


def count_splits(entry: Entry, kind: SplitKind, folds: int, num_random: int = 10) -> int | None:
    """How many splits `load` will give; None where only the files tell."""
    if kind == "published":
        return sum("_split_" in file.path for file in entry.files) or None
    return folds if kind == "kfold" else num_random


def _splits(
    entry: Entry,
    opened: Opened,
    kind: SplitKind,
    *,
    seed: int,
    fractions: tuple[float, float, float],
    folds: int,
    num_random: int,
) -> tuple[Split, ...]:
    if kind == "published":
        if not opened.splits:
            raise DataError(f"{entry.name} has no published splits. Use `splits='random'` or `splits='kfold'`.")
        return opened.splits
    if entry.task == "multilabel":
        raise DataError(f"{entry.name} has many labels per node and only its published split, got splits={kind!r}.")
    y = torch.cat([data.y for data in opened.graphs])
    if kind == "kfold":
        return stratified_folds(y, folds, seed)
    if num_random < 1:
        raise DataError(f"`num_random`, the number of random splits, must be >= 1, got {num_random}.")
    return tuple(random_split(y, fractions, (seed, i), stratify=entry.stratify) for i in range(num_random))
