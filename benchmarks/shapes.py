"""Graphs of the shape of well-known data sets, and how to run a layer on the edge-storing reference kernels."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import torch

import gind
from gind.kernels import op


class Shape(NamedTuple):
    nodes: int
    edges: int
    channels: int


SHAPES = {
    "cora": Shape(2_708, 5_278, 128),
    "pubmed": Shape(19_717, 44_324, 128),
    "squirrel": Shape(5_201, 198_353, 256),
}
LARGE = Shape(1_000_000, 5_000_000, 64)


def make_graph(shape: Shape, seed: int = 0) -> gind.Graph:
    """A random graph with exactly `shape.edges` edges and a heavy-tailed degree distribution."""
    generator = torch.Generator().manual_seed(seed)
    # node i is drawn with probability ~ (i + 1)^-1/2, then nodes are shuffled: hubs, but no locality in the numbering
    rank = (torch.rand(2, 2 * shape.edges, generator=generator).square() * shape.nodes).long()
    order = torch.randperm(shape.nodes, generator=generator)
    pairs = order[rank]
    pairs = pairs[:, pairs[0] != pairs[1]]
    low, high = pairs.min(dim=0).values, pairs.max(dim=0).values
    unique = torch.unique(low * shape.nodes + high)
    kept = unique[torch.randperm(len(unique), generator=generator)[: shape.edges]]
    graph = gind.Graph.from_edge_index(torch.stack([kept // shape.nodes, kept % shape.nodes]), shape.nodes)
    assert graph.num_edges == shape.edges, graph
    return graph


def make_problem(shape: Shape, norm: float = 3.0) -> tuple[gind.Diffusion, torch.Tensor, gind.Graph]:
    """A layer with ‖K‖ as given, an input and a graph."""
    torch.manual_seed(0)
    layer = gind.Diffusion(shape.channels, scaling=gind.Row(), stop=gind.Stop(1e-4, 200))
    with torch.no_grad():
        layer.K.mul_(norm / torch.linalg.matrix_norm(layer.K, 2))
    return layer, torch.randn(shape.nodes, shape.channels), make_graph(shape)


@contextlib.contextmanager
def reference_kernels() -> Iterator[None]:
    """Within, every operator runs its plain PyTorch definition, which stores edge tensors."""
    ops = [op._flux, op._flux_jvp, op._flux_secant, op._flux_curve, op._moments_vjp]
    with contextlib.ExitStack() as stack:
        for one in ops:
            stack.enter_context(one.set_kernel_enabled("cpu", enabled=False))
        yield
