"""Splits: a partition of the labelled, stratified, decided by the seed alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gind.datasets import DataError, Split, random_split, stratified_folds
from gind.datasets.splits import from_masks

LABELS = st.lists(st.integers(-1, 4), min_size=1, max_size=80).filter(lambda y: max(y) >= 0).map(torch.tensor)
SHARES = st.tuples(st.integers(1, 10), st.integers(0, 10), st.integers(0, 10)).map(
    lambda parts: tuple(part / sum(parts) for part in parts)
)


def parts(split: Split) -> list[torch.Tensor]:
    return [split.train, split.val, split.test]


def equal(one: Split, other: Split) -> bool:
    return all(torch.equal(a, b) for a, b in zip(parts(one), parts(other), strict=True))


@given(y=LABELS, shares=SHARES, seed=st.integers(0, 5))
def test_shares_of_one_split_all_that_is_labelled(
    y: torch.Tensor, shares: tuple[float, float, float], seed: int
) -> None:
    split = random_split(y, shares, seed)
    assert torch.equal(torch.cat(parts(split)).sort().values, torch.nonzero(y >= 0).flatten())


@given(y=LABELS, shares=SHARES, seed=st.integers(0, 5))
def test_a_class_of_three_or_more_is_trained_on(y: torch.Tensor, shares: tuple[float, float, float], seed: int) -> None:
    sizes = torch.bincount(y[y >= 0], minlength=5)
    trained = torch.bincount(y[random_split(y, shares, seed).train], minlength=5)
    assert bool((trained[sizes >= 3] > 0).all())


@given(y=LABELS, seed=st.integers(0, 5))
def test_each_class_is_shared_alike(y: torch.Tensor, seed: int) -> None:
    split = random_split(y, (0.5, 0.25, 0.25), seed)
    sizes = torch.bincount(y[y >= 0], minlength=5)
    total = int(sizes.sum())
    trained = torch.bincount(y[split.train], minlength=5)
    wanted = sizes * len(split.train) / total
    # rounded up or down, and one more where a class of three would have been left out
    assert bool(((trained - wanted).abs() < 2).all())
    assert abs(len(split.train) - total / 2) <= 0.5 or len(split.train) == max(1, int((sizes >= 3).sum()))


def test_large_classes_are_shared_within_one() -> None:
    y = torch.arange(3).repeat_interleave(torch.tensor([1000, 300, 77]))
    split = random_split(y, (0.48, 0.32, 0.2), 0)
    for part, share in zip(parts(split), (0.48, 0.32, 0.2), strict=True):
        assert bool(((torch.bincount(y[part]) - share * torch.tensor([1000, 300, 77])).abs() < 2).all())


def test_a_class_of_one_is_in_each_part_for_some_seed() -> None:
    y = torch.tensor([0] * 20 + [1] + [2] * 20)
    homes = [
        next(k for k, part in enumerate(parts(random_split(y, (0.48, 0.32, 0.2), (7, i)))) if 20 in part)
        for i in range(40)
    ]
    assert set(homes) == {0, 1, 2}


def test_numbers_of_entries_are_kept_exactly() -> None:
    y = torch.arange(2).repeat_interleave(200)
    split = random_split(y, (20, 100, 200), 3)
    assert [len(part) for part in parts(split)] == [20, 100, 200]
    assert torch.bincount(y[split.train]).tolist() == [10, 10]


def test_without_strata_classes_are_left_to_chance() -> None:
    y = torch.arange(2).repeat_interleave(200)
    drawn = {int((y[random_split(y, (20, 100, 200), i, stratify=False).train] == 0).sum()) for i in range(20)}
    assert len(drawn) > 3


@given(y=LABELS.filter(lambda y: int((y >= 0).sum()) >= 4), folds=st.integers(2, 4), seed=st.integers(0, 5))
def test_folds_partition_and_spread_each_class(y: torch.Tensor, folds: int, seed: int) -> None:
    splits = stratified_folds(y, folds, seed, val_fraction=0.25)
    labelled = torch.nonzero(y >= 0).flatten()
    assert torch.equal(torch.cat([split.test for split in splits]).sort().values, labelled)
    tested = torch.stack([torch.bincount(y[split.test], minlength=5) for split in splits])
    assert int((tested.amax(0) - tested.amin(0)).max()) <= 1
    assert int(tested.sum(1).max() - tested.sum(1).min()) <= 1
    for split in splits:
        assert torch.equal(torch.cat(parts(split)).sort().values, labelled)
        rest = torch.cat([split.train, split.val])
        held = torch.bincount(y[split.val], minlength=5)
        wanted = torch.bincount(y[rest], minlength=5) * len(split.val) / len(rest)
        assert bool(((held - wanted).abs() < 1).all())
        assert len(split.train) >= 1


def test_folds_of_balanced_classes_are_exact() -> None:
    y = torch.arange(2).repeat(50)
    for split in stratified_folds(y, 10, 0):
        assert [len(part) for part in parts(split)] == [81, 9, 10]
        assert torch.bincount(y[split.test]).tolist() == [5, 5]
    assert len(stratified_folds(y, 10, 0, val_fraction=0)[0].val) == 0


def test_the_seed_decides_and_the_global_generators_do_not() -> None:
    y = torch.arange(3).repeat(20)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, folds = random_split(y, (0.5, 0.3, 0.2), (4, 2)), stratified_folds(y, 5, 4)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert equal(first, random_split(y, (0.5, 0.3, 0.2), (4, 2)))
    assert all(equal(a, b) for a, b in zip(folds, stratified_folds(y, 5, 4), strict=True))
    assert not equal(first, random_split(y, (0.5, 0.3, 0.2), (4, 3)))
    assert not equal(first, random_split(y, (0.5, 0.3, 0.2), (5, 2)))


def test_masks_of_bytes_are_masks() -> None:
    train = torch.tensor([[1, 0], [0, 1], [0, 0]], dtype=torch.uint8)
    first, second = from_masks(train, torch.zeros(3, 2, dtype=torch.bool), 1 - train)
    assert [part.tolist() for part in parts(first)] == [[0], [], [1, 2]]
    assert [part.tolist() for part in parts(second)] == [[1], [], [0, 2]]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ((0.5, 0.5), "three shares"),
        ((0.0, 0.5, 0.5), "train > 0"),
        ((0.5, -0.1, 0.2), "three shares"),
        ((float("nan"), 0.1, 0.2), "three shares"),
        ((0.6, 0.3, 0.2), "sum to 1.1, more than 1"),
        ((20, 20, 21), "sum to 61, more than 60"),
        ((2, 20, 20), "cannot hold one of each of 3 classes"),
    ],
)
def test_shares_that_cannot_be_are_refused(shares: tuple[float, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        random_split(torch.arange(3).repeat(20), shares, 0)


def test_what_cannot_be_split_is_refused() -> None:
    y = torch.tensor([0, 1, -1])
    with pytest.raises(DataError, match="no entry of `y` is labelled"):
        random_split(-torch.ones(3, dtype=torch.long), (0.5, 0.3, 0.2), 0)
    with pytest.raises(DataError, match=r"between 2 and 2 .*got 3"):
        stratified_folds(y, 3, 0)
    with pytest.raises(DataError, match="val_fraction"):
        stratified_folds(y, 2, 0, val_fraction=1)
    with pytest.raises(DataError, match="seed is a whole number >= 0"):
        random_split(y, (0.5, 0.3, 0.2), -1)
