"""Generated graphs of the shape of well-known datasets: sizes and degrees are alike, the content is random."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from gind.datasets import Dataset, random_split
from gind.features import csr
from gind.graph import Graph

__all__ = ["SHAPES", "USUAL", "Shape", "make_dataset", "make_edges", "make_graph"]


class Shape(NamedTuple):
    """Sizes of a graph with bags of words; each edge is counted once."""

    nodes: int
    edges: int
    channels: int = 64
    features: int = 16
    density: float = 0.1
    """share of the features that are not zero"""
    classes: int = 5


SHAPES = {
    "texas": Shape(183, 279, features=1703, density=0.054),
    "cora": Shape(2_708, 5_278, features=1433, density=0.0127, classes=7),
    "pubmed": Shape(19_717, 44_324, features=500, density=0.1, classes=3),
    "squirrel": Shape(5_201, 198_353, features=2089, density=0.0086),
    "million": Shape(1_000_000, 5_000_000),
}
USUAL = ("texas", "cora", "pubmed", "squirrel")
"""measured if nothing else is asked for"""


def make_edges(shape: Shape, seed: int = 0) -> Tensor:
    """(2, edges): exactly as many distinct pairs as asked for, with a heavy-tailed degree distribution."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(shape.nodes, generator=generator)
    found = torch.empty(0, dtype=torch.long)
    while len(found) < shape.edges:
        # node i is drawn with probability ~ (i + 1)^-1/2, and nodes are shuffled: hubs, but no locality in the numbers
        drawn = torch.rand(2, 2 * shape.edges, generator=generator).square_()
        pairs = order[(drawn * shape.nodes).long()]
        pairs = pairs[:, pairs[0] != pairs[1]]
        found = torch.unique(torch.cat([found, pairs.amin(dim=0) * shape.nodes + pairs.amax(dim=0)]))
    kept = found[torch.randperm(len(found), generator=generator)[: shape.edges]]
    return torch.stack([kept // shape.nodes, kept % shape.nodes])


def make_graph(shape: Shape, seed: int = 0) -> Graph:
    """The graph alone."""
    return Graph.from_edge_index(make_edges(shape, seed), shape.nodes)


def make_dataset(name: str, shape: Shape, seed: int = 0) -> Dataset:
    """Graph, sparse features and labels, with one random split of 60, 20 and 20 percent."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(shape.classes, (shape.nodes,), generator=generator)
    x = _words(shape, generator)
    data = Data(x=x, edge_index=make_edges(shape, seed), y=y, num_nodes=shape.nodes)
    split = random_split(y, (0.6, 0.2, 0.2), (seed, 0), stratify=False)
    return Dataset(name, "node", "accuracy", (data,), tuple(map(str, range(shape.classes))), (split,))


def _words(shape: Shape, generator: torch.Generator) -> Tensor:
    """Ones in CSR; some words are frequent and most are rare."""
    frequency = torch.empty(shape.features).exponential_(generator=generator).mul_(shape.density).clamp_(max=1)
    mask = torch.rand(shape.nodes, shape.features, generator=generator) < frequency
    start = torch.cat([torch.zeros(1, dtype=torch.long), mask.sum(dim=1).cumsum(dim=0)])
    column = mask.nonzero()[:, 1].contiguous()
    return csr(start, column, torch.ones(len(column)), (shape.nodes, shape.features))
