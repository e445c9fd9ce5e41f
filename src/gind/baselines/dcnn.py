"""DCNN: diffusion-convolutional networks (Atwood and Towsley, 2016)."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_mean_pool

from gind.features import dropout

__all__ = ["DCNN"]


class DCNN(nn.Module):
    """Z = tanh(W ⊙ 1ᵀ[X, PX, ..., P^H X]/n), then a dense layer with tanh, then scores (eq. 5 of the paper).

    P = D⁻¹A is the transition matrix, H = `num_layers` the hops, and W (H + 1, in_channels) holds one weight for each
    hop and feature. The mean over the n nodes of a graph is taken inside of tanh; for nodes there is none (eq. 2).
    A node without neighbors has PX = 0. Messages go from edge_index[0] to edge_index[1].
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        *,
        task: Literal["node", "graph"] = "graph",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if num_layers < 0:
            raise ValueError(f"`num_layers` is the number of hops and must be at least 0, got {num_layers}.")
        if task not in ("node", "graph"):
            raise ValueError(f"`task` must be 'node' or 'graph', got {task!r}.")
        self.task, self.dropout = task, dropout
        self.weight = nn.Parameter(torch.empty(num_layers + 1, in_channels))
        self.dense = nn.Linear(self.weight.numel(), hidden_channels)
        self.out = nn.Linear(hidden_channels, out_channels)
        nn.init.normal_(self.weight, std=0.01)  # as in the authors' code

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (graphs or nodes, out_channels)."""
        hops = _diffuse(x.to_dense(), edge_index, edge_weight, len(self.weight) - 1).flatten(1)
        if self.task == "graph":
            hops = global_mean_pool(hops, batch)
        z = torch.tanh(self.weight.flatten() * hops)
        hidden = torch.tanh(self.dense(z))
        scores: Tensor = self.out(dropout(hidden, self.dropout, self.training))
        return scores


def _diffuse(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, hops: int) -> Tensor:
    """(nodes, hops + 1, channels): X, PX, ..., P^H X."""
    source, target = edge_index
    weight = x.new_ones(len(source)) if edge_weight is None else edge_weight.to(x.dtype)
    degree = x.new_zeros(len(x)).index_add(0, target, weight)
    # a node without neighbors has degree 0: probability 0 keeps inf out
    probability = (weight / torch.where(degree > 0, degree, torch.inf)[target])[:, None]
    powers = [x]
    for _ in range(hops):
        powers.append(torch.zeros_like(x).index_add(0, target, probability * powers[-1][source]))
    return torch.stack(powers, dim=1)
