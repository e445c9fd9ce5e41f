"""MLP: the honest floor, which does not see the graph."""

import itertools
from collections.abc import Iterable
from typing import Any, cast

from torch import Tensor, nn

from gind.features import dropout, project

__all__ = ["MLP"]


class MLP(nn.Module):
    """x → dropout → linear → ReLU, `num_layers` times, the last without ReLU. The graph is not used."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_layers: int = 2, *, dropout: float = 0.5
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        self.dropout = dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    def forward(self, x: Tensor, edge_index: Any = None, edge_weight: Any = None, batch: Any = None) -> Tensor:
        """Scores (nodes, out_channels)."""
        first, *rest = cast(Iterable[nn.Linear], self.layers)
        hidden = project(x, first.weight, first.bias, dropout=self.dropout, training=self.training)
        for layer in rest:
            hidden = layer(dropout(hidden.relu(), self.dropout, self.training))
        return hidden
