"""DGCNN: graph convolutions, SortPooling and a 1-D CNN (Zhang et al., 2018)."""

import itertools
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import SortAggregation

from gind.features import dropout

__all__ = ["DGCNN"]


class DGCNN(nn.Module):
    """Z_{t+1} = tanh(D̃⁻¹ÃZ_tW_t), Ã = A + I; the k nodes that come first when sorted, as a sequence for a CNN.

    The last of the `num_layers` convolutions has one channel. The outputs of all are set side by side, rows sorted by
    that channel, cut or filled with zeros to k rows (`SortAggregation`), and read by Conv1d over whole rows (16
    channels), MaxPool1d(2), Conv1d (32 channels, width 5), a dense layer and dropout. The authors take for k the
    number of nodes that 60 % of the graphs do not exceed, but at least 10.
    Messages go from edge_index[0] to edge_index[1]; `batch` must be sorted.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 4,
        *,
        task: Literal["node", "graph"] = "graph",
        dropout: float = 0.5,
        k: int = 30,
        dense_channels: int = 128,
    ) -> None:
        super().__init__()
        if task != "graph":
            raise ValueError(f"DGCNN classifies graphs, `task` must be 'graph', got {task!r}.")
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        if k < 10:
            raise ValueError(f"`k` must be at least 10, or the second Conv1d has nothing to read; got {k}.")
        self.dropout = dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), 1]
        self.convs = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(widths))
        self.sort = SortAggregation(k)
        row = sum(widths[1:])
        self.rows = nn.Conv1d(1, 16, row, row)
        self.sequence = nn.Conv1d(16, 32, 5)
        self.dense = nn.Linear(32 * (k // 2 - 4), dense_channels)
        self.out = nn.Linear(dense_channels, out_channels)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (graphs, out_channels)."""
        graphs = torch.zeros(len(x), dtype=torch.long, device=x.device) if batch is None else batch
        pooled = self.sort(self.embed(x, edge_index, edge_weight), graphs)
        sequence = F.max_pool1d(self.rows(pooled[:, None]).relu(), 2, 2)
        dense = self.dense(self.sequence(sequence).relu().flatten(1)).relu()
        scores: Tensor = self.out(dropout(dense, self.dropout, self.training))
        return scores

    def embed(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """(nodes, all channels): Z_1, ..., Z_T side by side."""
        source, target = edge_index
        hidden, outputs = x.to_dense(), []
        weight = hidden.new_ones(len(source)) if edge_weight is None else edge_weight.to(x.dtype)
        degree = hidden.new_ones(len(x)).index_add(0, target, weight)[:, None]
        for conv in self.convs:
            product = conv(hidden)
            hidden = torch.tanh(product.index_add(0, target, weight[:, None] * product[source]) / degree)
            outputs.append(hidden)
        return torch.cat(outputs, dim=1)
