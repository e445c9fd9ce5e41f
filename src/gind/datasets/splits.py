"""Splits: the published ones from their masks, random ones and folds from a seed, stratified by class."""

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gind.datasets.dataset import DataError, Split

__all__ = ["from_masks", "random_split", "stratified_folds"]

Integers = NDArray[np.int64]


def from_masks(train: Tensor, val: Tensor, test: Tensor) -> tuple[Split, ...]:
    """The splits of masks (n, splits); a mask may be uint8, where `~` and indexing would mislead."""
    columns = [mask.bool().reshape(len(mask), -1).unbind(1) for mask in (train, val, test)]
    return tuple(Split(*(_where(mask) for mask in masks)) for masks in zip(*columns, strict=True))


def random_split(y: Tensor, fractions: Sequence[float], seed: int | Sequence[int], *, stratify: bool = True) -> Split:
    """A split of the labelled entries of `y` (>= 0), each class shared out alike as far as its size allows.

    `fractions` are three shares of a sum of at most 1, or three whole numbers of entries.
    """
    rng = _generator(seed)
    labelled = torch.nonzero(y >= 0).flatten().numpy()
    if len(labelled) == 0:
        raise DataError("Nothing to split: no entry of `y` is labelled (>= 0).")
    y_of = np.unique(y.numpy()[labelled], return_inverse=True)[1] if stratify else np.zeros_like(labelled)
    available = np.bincount(y_of)
    # a class of one or two can be left out of training: then validation or test can still see it
    needed = available >= 3
    sizes = _sizes(fractions, len(labelled), max(1, int(needed.sum())))
    train = _one_of_each(_apportion(sizes[0], available, rng), needed)
    val = _apportion(sizes[1], available - train, rng)
    test = _apportion(sizes[2], available - train - val, rng)
    return Split(*_deal(labelled, y_of, (train, val, test), rng))


def stratified_folds(y: Tensor, folds: int, seed: int | Sequence[int], val_fraction: float = 0.1) -> tuple[Split, ...]:
    """`folds` splits whose test parts partition the labelled entries of `y`, each class spread evenly.

    Validation is `val_fraction` of what is not tested, drawn by class; the rest trains.
    """
    labelled = torch.nonzero(y >= 0).flatten().numpy()
    if not 2 <= folds <= len(labelled):
        raise DataError(f"`folds` must be between 2 and {len(labelled)} (the labelled entries), got {folds}.")
    if not 0 <= val_fraction < 1:
        raise DataError(f"`val_fraction` must be at least 0 and less than 1, got {val_fraction}.")
    rng = _generator(seed)
    _, y_of = np.unique(y.numpy()[labelled], return_inverse=True)
    shuffled = rng.permutation(len(labelled))
    by_class = shuffled[np.argsort(y_of[shuffled], kind="stable")]
    fold_of = np.empty(len(labelled), dtype=np.int64)
    # dealt like cards, class after class: sizes of folds, and of each class in them, differ by at most one
    fold_of[by_class] = np.arange(len(labelled)) % folds
    return tuple(_fold(labelled, y_of, fold_of == fold, val_fraction, rng) for fold in range(folds))


def _fold(
    labelled: Integers, y_of: Integers, tested: NDArray[np.bool_], val_fraction: float, rng: np.random.Generator
) -> Split:
    rest = labelled[~tested]
    available = np.bincount(y_of[~tested], minlength=int(y_of.max()) + 1)
    # at least one entry is left to train on, however large the fraction
    val = _apportion(min(round(val_fraction * len(rest)), len(rest) - 1), available, rng)
    train_index, val_index = _deal(rest, y_of[~tested], (available - val, val), rng)
    return Split(train_index, val_index, torch.from_numpy(labelled[tested]))


def _sizes(fractions: Sequence[float], total: int, least: int) -> tuple[int, int, int]:
    """How many of `total` train (`least` or more), validate and test."""
    if len(fractions) != 3 or not all(part >= 0 for part in fractions) or not fractions[0] > 0:
        raise DataError(f"Expected three shares (train > 0, validation, test), got {tuple(fractions)}.")
    whole = all(isinstance(part, int) for part in fractions)
    if sum(fractions) > (total if whole else 1 + 1e-9):
        raise DataError(
            f"The shares {tuple(fractions)} sum to {sum(fractions):g}, more than {total if whole else 1}. "
            f"Pass shares of at most 1 in all, or whole numbers of at most {total} in all (the labelled entries)."
        )
    if whole and fractions[0] < least:
        raise DataError(f"{fractions[0]} entries to train on cannot hold one of each of {least} classes: ask for more.")
    # ends are rounded, not sizes, so that shares of a sum of 1 leave nothing over
    first, second, third = (int(end) if whole else round(end * total) for end in itertools.accumulate(fractions))
    train = max(first, least)
    val = min(second - first, total - train)
    return train, val, min(third - second, total - train - val)


def _apportion(total: int, available: Integers, rng: np.random.Generator) -> Integers:
    """`total` shared in proportion to `available`, each share rounded up or down at random; never more than there is.

    In whole numbers: the cumulated shares are cut at a random phase (systematic sampling), so the sum is exact.
    """
    whole = int(available.sum())
    if whole == 0:
        return np.zeros_like(available)
    ends = (np.cumsum(available) * total + rng.integers(whole)) // whole
    return np.diff(ends, prepend=0)


def _one_of_each(counts: Integers, needed: NDArray[np.bool_]) -> Integers:
    """`counts` with at least one of each needed class, taken from the class that can best spare it."""
    counts = counts.copy()
    for group in np.flatnonzero(needed & (counts == 0)):
        counts[np.argmax(counts - needed)] -= 1
        counts[group] += 1
    return counts


def _deal(index: Integers, y_of: Integers, counts: Sequence[Integers], rng: np.random.Generator) -> list[Tensor]:
    """Parts of `index` with `counts[part][class]` members of each class, drawn at random; sorted."""
    parts: list[list[Integers]] = [[] for _ in counts]
    for group in range(len(counts[0])):
        members = rng.permutation(index[y_of == group])
        ends = np.cumsum([count[group] for count in counts])
        for part, drawn in zip(parts, np.split(members, ends)[: len(parts)], strict=True):
            part.append(drawn)
    return [torch.from_numpy(np.sort(np.concatenate(part))) for part in parts]


def _where(mask: Tensor) -> Tensor:
    return torch.nonzero(mask).flatten()


def _generator(seed: int | Sequence[int]) -> np.random.Generator:
    """Our own generator: neither reads nor moves the global ones."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise DataError(f"A seed is a whole number >= 0 (or several), got {seed!r}.") from None
