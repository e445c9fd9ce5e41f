"""APPNP (Gasteiger et al., 2019), on PyG's `APPNP`."""

import itertools
from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn
from torch_geometric.nn.conv import appnp

from gind.baselines.propagate import Sums, neighbors, propagation
from gind.features import dropout, project

__all__ = ["APPNP"]


class _Propagate(Sums, appnp.APPNP):
    """PyG's propagation with our product."""


class APPNP(nn.Module):
    """Predict, then propagate: Z⁰ = MLP(X), Zᵏ⁺¹ = (1 - α) Â Zᵏ + α Z⁰, and Zᴷ are the scores.

    The MLP has `num_layers` layers with ReLU between and dropout before each. Dropout of Â is left out: PyG's layer
    drops out of what it has dropped out of before (issue 10783).

    The authors decay the weights of the first layer only; `fit` asks for the others.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        steps: int = 10,
        alpha: float = 0.1,
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1 or steps < 0 or not 0 <= alpha <= 1:
            raise ValueError(
                "APPNP needs `num_layers` >= 1, `steps` >= 0 and `alpha` in [0, 1], "
                f"got {num_layers}, {steps} and {alpha}."
            )
        self.dropout, self.undirected = dropout, undirected
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.propagate = _Propagate(steps, alpha, dropout=0.0, normalize=False)

    def undecayed_parameters(self) -> list[nn.Parameter]:
        """What has no weight decay: all but the weights of the first layer."""
        return list(self.layers.parameters())[1:]

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        first, *rest = cast(Iterable[nn.Linear], self.layers)
        z = project(x, first.weight, first.bias, dropout=self.dropout, training=self.training)
        for layer in rest:
            z = layer(dropout(z.relu(), self.dropout, self.training))
        graph = neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected)
        scores: Tensor = self.propagate(z, propagation(graph, z.dtype))
        return scores
