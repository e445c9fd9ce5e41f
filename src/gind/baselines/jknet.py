"""JKNet (Xu et al., 2018) on GCN layers: PyG's `GCNConv` and `JumpingKnowledge`."""

import itertools
from typing import Literal

from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge

from gind.baselines.propagate import Convolution, neighbors, propagation
from gind.features import dropout, project

__all__ = ["JKNet"]


class JKNet(nn.Module):
    """Hˡ = ReLU(Â Hˡ⁻¹ Wˡ + cˡ) for l = 1 ... L, and the scores are linear in all of them: V jump(H¹, ..., Hᴸ) + c.

    `jump`: "cat" puts them side by side, "max" takes the largest per channel, "lstm" a mean by attention. Dropout
    before each linear map.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 4,
        *,
        dropout: float = 0.5,
        jump: Literal["cat", "max", "lstm"] = "cat",
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        if jump not in ("cat", "max", "lstm"):
            raise ValueError(f"`jump` must be 'cat', 'max' or 'lstm', got {jump!r}.")
        self.dropout, self.undirected = dropout, undirected
        widths = [in_channels, *[hidden_channels] * num_layers]
        convs = [Convolution(a, b, normalize=False) for a, b in itertools.pairwise(widths)]
        self.convs = nn.ModuleList(convs)
        # the first linear map is done by `project`, which takes sparse features
        self.first = convs[0].lin
        convs[0].lin = nn.Identity()
        self.jump = JumpingKnowledge(jump, hidden_channels, num_layers)
        self.head = nn.Linear(hidden_channels * (num_layers if jump == "cat" else 1), out_channels)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        graph = neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected)
        hidden = project(x, self.first.weight, dropout=self.dropout, training=self.training)
        matrix = propagation(graph, hidden.dtype)
        layers: list[Tensor] = []
        for conv in self.convs:
            if layers:
                hidden = dropout(layers[-1], self.dropout, self.training)
            layers.append(conv(hidden, matrix).relu())
        scores: Tensor = self.head(dropout(self.jump(layers), self.dropout, self.training))
        return scores
