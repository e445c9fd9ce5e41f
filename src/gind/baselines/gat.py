"""GAT (Veličković et al., 2018), on PyG's `GATConv` with our sums over neighbors."""

import torch.nn.functional as F
from torch import Tensor, nn

from gind.baselines.attention import Attention, with_loops
from gind.baselines.propagate import neighbors
from gind.features import dropout, project

__all__ = ["GAT"]


class GAT(nn.Module):
    """h_i = Σ_j α_ij W h_j over the neighbors j of i and i itself, α_i = softmax_j LeakyReLU(aᵀ[W h_i ‖ W h_j]).

    Hidden layers have `heads` such sums of `hidden_channels` each, side by side, then ELU; the last has the mean of
    `out_heads`. Dropout before each layer and on α. Weights of edges are not used. Gradients are of first order
    and in reverse, as those of the diffusion layers are: `torch.func.jvp` does not see through the sums.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        heads: int = 8,
        out_heads: int = 1,
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1 or heads < 1 or out_heads < 1:
            raise ValueError(
                f"`num_layers`, `heads` and `out_heads` must be at least 1, got {num_layers}, {heads} and {out_heads}."
            )
        self.dropout, self.undirected = dropout, undirected
        widths = [in_channels, *[hidden_channels * heads] * (num_layers - 1)]
        convs = [Attention(width, hidden_channels, heads, dropout=dropout) for width in widths[:-1]]
        convs.append(Attention(widths[-1], out_channels, out_heads, concat=False, dropout=dropout))
        self.convs = nn.ModuleList(convs)
        # the first linear map is done by `project`, which takes sparse features
        self.first = convs[0].lin
        convs[0].lin = nn.Identity()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        graph = neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected)
        edges = graph.keep(with_loops, lambda: with_loops(graph))
        hidden = project(x, self.first.weight, dropout=self.dropout, training=self.training)
        for number, conv in enumerate(self.convs):
            if number:
                hidden = dropout(F.elu(hidden), self.dropout, self.training)
            hidden = conv(hidden, edges)
        return hidden
