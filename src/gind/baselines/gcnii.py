"""GCNII (Chen et al., 2020), on PyG's `GCN2Conv`."""

from torch import Tensor, nn
from torch_geometric.nn import GCN2Conv

from gind.baselines.propagate import Sums, neighbors, propagation
from gind.features import dropout, encode, make_linear

__all__ = ["GCNII"]


class _Conv(Sums, GCN2Conv):
    """PyG's layer with our product."""


class GCNII(nn.Module):
    """Hˡ = ReLU(P ((1 - βₗ) I + βₗ Wˡ)), P = (1 - α) Â Hˡ⁻¹ + α H⁰, βₗ = log(θ/l + 1), H⁰ = ReLU(X W⁰ + c⁰).

    The scores are linear in the last Hˡ; dropout before each layer. θ is the paper's λ. `shared_weights=False` has a
    second matrix for H⁰ (GCNII*), `residual=True` adds Hˡ⁻¹ before the ReLU (the authors' model for PPI).

    All parameters train alike, as in the authors' runs on ten splits. In their runs on the public split the
    convolutions have a weight decay of their own (0.01, the others 5e-4): with `own_group=True` they are the second
    group of the optimizer, whose options are `implicit_lr` and `implicit_weight_decay`; set both.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 64,
        *,
        dropout: float = 0.5,
        alpha: float = 0.1,
        theta: float = 0.5,
        shared_weights: bool = True,
        residual: bool = False,
        own_group: bool = False,
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1 or not 0 <= alpha <= 1 or not theta >= 0:
            raise ValueError(
                "GCNII needs `num_layers` >= 1, `alpha` in [0, 1] and `theta` >= 0, "
                f"got {num_layers}, {alpha} and {theta}."
            )
        self.dropout, self.residual, self.own_group, self.undirected = dropout, residual, own_group, undirected
        self.encoder = make_linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList(
            _Conv(hidden_channels, alpha, theta, layer, shared_weights, normalize=False)
            for layer in range(1, num_layers + 1)
        )
        self.head = nn.Linear(hidden_channels, out_channels)

    def implicit_parameters(self) -> list[nn.Parameter]:
        """What the optimizer keeps as its second group: the convolutions, if they are to have one."""
        return list(self.convs.parameters()) if self.own_group else []

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        graph = neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected)
        first = encode(x, self.encoder, self.dropout, self.training).relu()
        matrix, hidden = propagation(graph, first.dtype), first
        for conv in self.convs:
            before = dropout(hidden, self.dropout, self.training)
            after = conv(before, first, matrix)
            hidden = (after + before if self.residual else after).relu()
        scores: Tensor = self.head(dropout(hidden, self.dropout, self.training))
        return scores
