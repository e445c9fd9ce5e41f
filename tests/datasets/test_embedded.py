"""Embedded data: always there, the graph is that of the nearest neighbors."""

import numpy as np
import pytest
import torch
from real_data import GENERATED, counted, real
from sklearn.neighbors import kneighbors_graph

from gind.datasets import DATASETS, DataError, load

NEIGHBORS = ["digits", "wine", "breast-cancer"]


@pytest.mark.parametrize("name", GENERATED)
def test_counts_are_those_of_the_table(name: str) -> None:
    counts, expected = counted(name), DATASETS[name].counts
    assert (counts.nodes, counts.edges, counts.features, counts.classes, counts.graphs) == (
        expected.nodes,
        expected.edges,
        expected.features,
        expected.classes,
        expected.graphs,
    )
    assert min(counts.class_sizes) > 0
    assert counts.self_loops == 0
    assert counts.edges == 2 * counts.undirected_edges
    assert len(real(name).splits) == 10


@pytest.mark.parametrize("name", ["wine", "breast-cancer"])
def test_neighbors_are_those_of_scikit_learn(name: str) -> None:
    data = load(name, neighbors=4).graphs[0]
    # in double precision, as ours: float32 features could turn a near tie
    nearest = kneighbors_graph(np.asarray(data.x, dtype=np.float64), 4, include_self=False)
    assert set(zip(*data.edge_index.tolist(), strict=True)) == set(zip(*(nearest + nearest.T).nonzero(), strict=True))


@pytest.mark.parametrize("name", NEIGHBORS)
def test_features_have_one_scale(name: str) -> None:
    x = real(name).graphs[0].x
    assert x.dtype == torch.float32
    if name == "digits":
        assert (float(x.min()), float(x.max())) == (0, 1)
    else:
        torch.testing.assert_close(x.mean(0), torch.zeros(x.shape[1]), atol=1e-5, rtol=0)
        torch.testing.assert_close(x.std(0, correction=0), torch.ones(x.shape[1]), atol=1e-5, rtol=0)


def test_equal_distances_go_to_the_lower_index() -> None:
    from gind.datasets.embedded import _nearest

    edges = _nearest(np.array([[0.0], [1.0], [-1.0], [5.0]]), 1)
    assert sorted(zip(*edges.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (3, 1)]


def test_the_karate_club_has_four_communities() -> None:
    dataset = real("karate")
    assert torch.equal(dataset.graphs[0].x, torch.eye(34))
    assert counted("karate").class_sizes == (13, 12, 4, 5)


def test_classes_have_their_names() -> None:
    assert real("breast-cancer").classes == ("malignant", "benign")
    assert real("digits").classes == tuple("0123456789")


@pytest.mark.parametrize("neighbors", [0, 178, 2.0, True])
def test_other_numbers_of_neighbors_are_refused(neighbors: int) -> None:
    with pytest.raises(DataError, match="`neighbors` must be a whole number from 1 to 177"):
        load("wine", neighbors=neighbors)
