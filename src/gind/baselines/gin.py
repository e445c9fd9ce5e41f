"""GIN (Xu et al., 2019), on PyG's `GINConv`."""

from typing import Literal

from torch import Tensor, nn
from torch_geometric.nn import GINConv, global_add_pool

from gind.features import dropout

__all__ = ["GIN"]


class GIN(nn.Module):
    """H_{t+1} = ReLU(BN(MLP_t((1 + ε)H_t + AH_t))); scores Σ_t dropout(W_t Σ_nodes H_t + c_t), t = 0, ..., num_layers.

    The MLPs have one hidden layer with BatchNorm. ε is 0, or learned with `train_eps`. `num_layers` counts the
    convolutions (the authors count the input H_0 as well, so that their 5 layers are 4 here). For nodes the sum over
    nodes is left out. `GINConv` has no weights of edges: `edge_weight` is not used.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 5,
        *,
        task: Literal["node", "graph"] = "graph",
        dropout: float = 0.5,
        train_eps: bool = False,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        if task not in ("node", "graph"):
            raise ValueError(f"`task` must be 'node' or 'graph', got {task!r}.")
        self.task, self.dropout = task, dropout
        widths = [in_channels, *[hidden_channels] * num_layers]
        self.convs = nn.ModuleList(GINConv(_mlp(a, hidden_channels), train_eps=train_eps) for a in widths[:-1])
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden_channels) for _ in range(num_layers))
        self.heads = nn.ModuleList(nn.Linear(width, out_channels) for width in widths)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (graphs or nodes, out_channels)."""
        hidden = x.to_dense()
        scores = self._score(0, hidden, batch)
        for number, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True), start=1):
            hidden = norm(conv(hidden, edge_index)).relu()
            scores = scores + self._score(number, hidden, batch)
        return scores

    def _score(self, number: int, hidden: Tensor, batch: Tensor | None) -> Tensor:
        pooled = global_add_pool(hidden, batch) if self.task == "graph" else hidden
        # after the linear map, as in the authors' code
        return dropout(self.heads[number](pooled), self.dropout, self.training)


def _mlp(in_channels: int, hidden_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(in_channels, hidden_channels),
        nn.BatchNorm1d(hidden_channels),
        nn.ReLU(),
        nn.Linear(hidden_channels, hidden_channels),
    )
