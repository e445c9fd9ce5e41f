"""MLP: the honest floor, which does not see the edges."""

import itertools
from collections.abc import Iterable
from typing import Any, Literal, cast

from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from gind.features import project
from gind.graph import Graph, pool

__all__ = ["MLP"]


class MLP(nn.Module):
    """h ↦ ReLU(W h + c) node by node, then linear scores; edges and their weights are not used.

    nodes    W_L h_i + c_L, h_i after L - 1 layers, L = `num_layers`
    graphs   W_L Σ_i h_i + c_L, the sum over the nodes of a graph: the parameters are the same

    Dropout before each linear map, for graphs after the sum.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        task: Literal["node", "graph"] = "node",
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        if task not in ("node", "graph"):
            raise ValueError(f"`task` must be 'node' or 'graph', got {task!r}.")
        self.task, self.dropout = task, dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    def forward(
        self, x: Tensor, edge_index: Any = None, edge_weight: Any = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes or graphs, out_channels)."""
        hidden, last = x, self.layers[-1]
        for layer in cast(Iterable[nn.Linear], self.layers):
            hidden = self._sum(hidden, edge_index, batch) if layer is last else hidden
            hidden = project(hidden, layer.weight, layer.bias, dropout=self.dropout, training=self.training)
            hidden = hidden if layer is last else hidden.relu()
        return hidden

    def _sum(self, hidden: Tensor, edge_index: Any, batch: Tensor | None) -> Tensor:
        """Σ_i h_i for each graph; for nodes h itself."""
        if self.task == "node":
            return hidden
        if isinstance(edge_index, Graph):  # has its own batch
            return pool(hidden.to_dense(), edge_index, "sum")
        pooled: Tensor = global_add_pool(hidden.to_dense(), batch)
        return pooled
