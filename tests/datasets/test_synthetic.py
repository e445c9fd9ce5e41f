"""Chains: against one written out, and refusals."""

from typing import Any

import pytest
import torch

from gind.datasets import DataError, chains, load


def test_chains_are_these() -> None:
    data = chains(length=3, classes=2, chains=2, width=4)
    expected = torch.zeros(12, 4)
    expected[0, 0] = expected[3, 0] = expected[6, 1] = expected[9, 1] = 1
    assert torch.equal(data.x, expected)
    assert data.y.tolist() == [0] * 6 + [1] * 6
    steps = [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8), (9, 10), (10, 11)]
    assert sorted(zip(*data.edge_index.tolist(), strict=True)) == sorted(steps + [(b, a) for a, b in steps])


def test_chains_load_with_ten_small_random_splits() -> None:
    dataset = load("chains", length=50)
    assert dataset.graphs[0].x.shape == (2000, 100)
    assert len(dataset.splits) == 10
    assert [len(part) for part in (dataset.splits[3].train, dataset.splits[3].val, dataset.splits[3].test)] == [
        100,
        200,
        1700,
    ]


def test_the_split_of_the_literature_is_an_option() -> None:
    split = load("chains", fractions=(20, 100, 200)).splits[0]
    assert [len(split.train), len(split.val), len(split.test)] == [20, 100, 200]


def test_a_chain_of_one_node_has_no_edge() -> None:
    assert chains(length=1).edge_index.shape == (2, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "`length` of chains must be a whole number >= 1, got 0"),
        ({"length": 2.5}, "`length` of chains"),
        ({"classes": 1}, "`classes` of chains must be a whole number >= 2"),
        ({"chains": True}, "`chains` of chains"),
        ({"width": 2, "classes": 3}, r"`width` of chains must be a whole number >= 3 \(the classes\), got 2"),
    ],
)
def test_other_chains_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load("chains", **options)
