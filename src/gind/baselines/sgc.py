"""SGC (Wu et al., 2019): a linear classifier of features that were averaged over the graph."""

from torch import Tensor, nn

from gind.baselines.propagate import neighbors, propagation, times
from gind.features import make_linear, project

__all__ = ["SGC"]


class SGC(nn.Module):
    """Âᵏ X W + c, k = `num_layers`; dropout of the features. Nothing is hidden, so `hidden_channels` is not used."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.0,
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        self.num_layers, self.dropout, self.undirected = num_layers, dropout, undirected
        self.lin = make_linear(in_channels, out_channels)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        # W first: it commutes with Â, and there are fewer classes than features
        scores = project(x, self.lin.weight, dropout=self.dropout, training=self.training)
        matrix = propagation(neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected), scores.dtype)
        for _ in range(self.num_layers):
            scores = times(matrix, scores)
        return scores + self.lin.bias
