"""GraphSAGE (Hamilton et al., 2017) with the mean of all neighbors, on PyG's `SAGEConv`."""

import itertools
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from gind.baselines.propagate import neighbors, square, times
from gind.features import dropout, project
from gind.graph import Graph

__all__ = ["SAGE", "mean_of_neighbors"]


class _Conv(SAGEConv):
    """PyG's layer with our product."""

    def message_and_aggregate(self, adj_t: Tensor, x: tuple[Tensor, Tensor | None]) -> Tensor:
        """A x for the neighbors' part of x."""
        return times(adj_t, x[0])


class SAGE(nn.Module):
    """h_i ↦ W h_i + V mean_j h_j + c over the neighbors j of i, with ReLU between and dropout before each layer.

    A node without neighbors, or only with such of weight 0, has the mean 0; weights of edges weigh the mean; a
    self-loop is no neighbor.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        self.dropout, self.undirected = dropout, undirected
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        # the matrix holds 1 / degree: its sum is the mean
        self.convs = nn.ModuleList(_Conv(a, b, aggr="sum") for a, b in itertools.pairwise(widths))
        # the first linear maps are done by `project`, which takes sparse features
        self.neighbor: Any = self.convs[0].lin_l
        self.ego: Any = self.convs[0].lin_r
        self.convs[0].lin_l, self.convs[0].lin_r = nn.Identity(), nn.Identity()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        graph = neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected)
        # one product for both maps: the node and its neighbors see the same dropout
        weights = torch.cat([self.neighbor.weight, self.ego.weight])
        first, *rest = self.convs
        both = project(x, weights, dropout=self.dropout, training=self.training)
        neighbor, ego = both.chunk(2, dim=1)
        mean = mean_of_neighbors(graph, both.dtype)
        hidden: Tensor = first((neighbor, ego + self.neighbor.bias), mean)
        for conv in rest:
            hidden = conv(dropout(hidden.relu(), self.dropout, self.training), mean)
        return hidden


def mean_of_neighbors(graph: Graph, dtype: torch.dtype) -> Tensor:
    """D⁻¹ A as CSR; A_ij is the weight of j → i, D the row sums of A. A row whose weights are all 0 is 0."""

    def build() -> Tensor:
        weight = torch.ones_like(graph.tail, dtype=torch.float64) if graph.weight is None else graph.weight
        degree = torch.zeros_like(graph.loops).index_add_(0, graph.head, weight)
        # 0 / inf, not 0 / 0
        share = weight / torch.where(degree > 0, degree, torch.inf)[graph.head]
        return square(graph.head, graph.tail, share, graph.num_nodes).to(dtype)

    return graph.keep(("mean of neighbors", dtype), build)
