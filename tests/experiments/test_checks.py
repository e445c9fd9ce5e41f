"""What is refused ahead is what would be refused later."""

import pytest

from gind.datasets import find, load
from gind.datasets.entry import SplitKind
from gind.datasets.load import count_splits


@pytest.mark.parametrize("name", ["wine", "karate", "chains"])
@pytest.mark.parametrize(("kind", "folds"), [("random", 10), ("kfold", 10), ("kfold", 3)])
def test_splits_are_counted_without_data(name: str, kind: SplitKind, folds: int) -> None:
    assert count_splits(find(name), kind, folds) == len(load(name, splits=kind, folds=folds).splits)
