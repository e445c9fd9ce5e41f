"""`statistics`: what a dataset holds, counted; the numbers that papers' tables disagree on, each under one name."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from gind.datasets.dataset import Dataset

__all__ = ["Statistics", "statistics"]


@dataclasses.dataclass(frozen=True)
class Statistics:
    """Counts over all graphs of a dataset; the last three are None unless the task is "node"."""

    graphs: int
    nodes: int
    smallest: int
    """nodes of the smallest graph"""
    largest: int
    edges: int
    """columns of `edge_index`"""
    self_loops: int
    undirected_edges: int
    """pairs of different nodes with an edge either way"""
    undirected_edges_and_loops: int
    isolated_nodes: int
    """nodes without an edge to another"""
    graphs_with_isolated_nodes: int
    features: int
    classes: int
    class_sizes: tuple[int, ...]
    """nodes, or graphs, of each class; with many labels: nodes that have it"""
    unlabelled: int
    homophily: float | None
    """share of undirected edges, without loops, between labelled nodes, that join equal labels"""
    duplicate_features: int | None
    """nodes minus distinct feature rows"""
    duplicated_nodes: int | None
    """nodes that share label, in-neighbors and out-neighbors with another"""


def statistics(dataset: Dataset) -> Statistics:
    """The statistics of `dataset`."""
    distinct = [_pairs(data) for data in dataset.graphs]
    counts = np.array([_edge_counts(data, ends) for data, ends in zip(dataset.graphs, distinct, strict=True)])
    edges, self_loops, looped_nodes, pairs, isolated = counts.sum(axis=0).tolist()
    sizes = [_num_nodes(data) for data in dataset.graphs]
    y = torch.cat([data.y for data in dataset.graphs])
    whole = dataset.graphs[0] if dataset.task == "node" else None
    return Statistics(
        graphs=len(sizes),
        nodes=sum(sizes),
        smallest=min(sizes),
        largest=max(sizes),
        edges=edges,
        self_loops=self_loops,
        undirected_edges=pairs,
        undirected_edges_and_loops=pairs + looped_nodes,
        isolated_nodes=isolated,
        graphs_with_isolated_nodes=int((counts[:, -1] > 0).sum()),
        features=dataset.num_features,
        classes=dataset.num_classes,
        class_sizes=_class_sizes(y, dataset.num_classes),
        unlabelled=0 if y.dim() > 1 else int((y < 0).sum()),
        homophily=None if whole is None else _homophily(whole, distinct[0]),
        duplicate_features=None if whole is None else _num_nodes(whole) - len(set(_rows(whole.x))),
        duplicated_nodes=None if whole is None else _duplicated_nodes(whole),
    )


def _num_nodes(data: Data) -> int:
    return int(data.x.shape[0])


def _pairs(data: Data) -> Tensor:
    """Undirected edges (2, m), each once, without loops, smaller end first."""
    low, high = data.edge_index.amin(dim=0), data.edge_index.amax(dim=0)
    pairs: Tensor = coalesce(torch.stack([low, high])[:, low != high], num_nodes=_num_nodes(data))
    return pairs


def _edge_counts(data: Data, pairs: Tensor) -> tuple[int, int, int, int, int]:
    """Columns of `edge_index`, loops among them, nodes with a loop, undirected edges, isolated nodes."""
    source, target = data.edge_index
    loops = source[source == target]
    isolated = torch.ones(_num_nodes(data), dtype=torch.bool)
    isolated[pairs] = False
    return len(source), len(loops), len(torch.unique(loops)), pairs.shape[1], int(isolated.sum())


def _class_sizes(y: Tensor, classes: int) -> tuple[int, ...]:
    sizes = y.sum(dim=0) if y.dim() > 1 else torch.bincount(y[y >= 0], minlength=classes)
    return tuple(int(size) for size in sizes)


def _homophily(data: Data, pairs: Tensor) -> float | None:
    """None where no edge joins two labelled nodes."""
    y = data.y[pairs]
    y = y[:, (y >= 0).all(dim=0)]
    return int((y[0] == y[1]).sum()) / y.shape[1] if y.shape[1] else None


def _rows(matrix: Tensor) -> Iterator[bytes]:
    """Each row as bytes that are equal for equal rows."""
    if matrix.layout != torch.sparse_csr:
        # adding 0 turns -0 into 0
        yield from (row.tobytes() for row in matrix.numpy() + 0)
        return
    columns, values = matrix.col_indices().numpy(), matrix.values().numpy()
    for start, end in itertools.pairwise(matrix.crow_indices().tolist()):
        yield columns[start:end].tobytes() + values[start:end].tobytes()


def _duplicated_nodes(data: Data) -> int:
    n = _num_nodes(data)
    both = (data.edge_index, data.edge_index.flip(0))
    keys = zip(data.y.tolist(), *(_neighbor_sets(edges, n) for edges in both), strict=True)
    return sum(size for size in collections.Counter(keys).values() if size > 1)


def _neighbor_sets(edge_index: Tensor, n: int) -> Iterator[bytes]:
    """Per node, its targets as bytes: sorted and each once."""
    source, target = coalesce(edge_index, num_nodes=n)
    ends = torch.bincount(source, minlength=n).cumsum(0)[:-1].numpy()
    return (part.tobytes() for part in np.split(target.numpy(), ends))
