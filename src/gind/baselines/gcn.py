"""GCN (Kipf and Welling, 2017), on PyG's `GCNConv`."""

import itertools

from torch import Tensor, nn

from gind.baselines.propagate import Convolution, neighbors, propagation
from gind.features import dropout, project

__all__ = ["GCN"]


class GCN(nn.Module):
    """Hᵏ⁺¹ = ReLU(Â Hᵏ Wᵏ + cᵏ), `num_layers` times, the last without ReLU; dropout before each."""

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
        convs = [Convolution(a, b, normalize=False) for a, b in itertools.pairwise(widths)]
        self.convs = nn.ModuleList(convs)
        # the first linear map is done by `project`, which takes sparse features
        self.first = convs[0].lin
        convs[0].lin = nn.Identity()

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        hidden = project(x, self.first.weight, dropout=self.dropout, training=self.training)
        matrix = propagation(neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected), hidden.dtype)
        for number, conv in enumerate(self.convs):
            if number:
                hidden = dropout(hidden.relu(), self.dropout, self.training)
            hidden = conv(hidden, matrix)
        return hidden
