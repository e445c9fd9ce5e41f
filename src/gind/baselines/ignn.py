"""IGNN (Gu et al., 2020): an equilibrium that a constraint on W makes unique."""

import math
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gind.baselines.adjacency import Adjacency, AdjacencyKind, adjacency, open_graph
from gind.baselines.unit import unit_rows
from gind.diffusion.map import inner_product
from gind.diffusion.spectral import spectral_bound
from gind.equilibrium import Contraction, Implicit, InnerProduct, Stop, fixed_point
from gind.features import Dropout, check, project
from gind.graph import Graph, Pooling, pool

__all__ = ["IGNN", "ImplicitGraph", "project_rows"]

Activation = Literal["relu", "identity"]


def project_rows(W: Tensor, radius: float) -> Tensor:
    """Each row of W on the l1 ball of a radius, exactly: the nearest W with ‖W‖∞ ≤ radius; differentiable.

    w ↦ sign(w) (|w| - θ)₊ with θ ≥ 0 so that the l1 norm is the radius, for rows outside of the ball (Duchi et al.,
    2008): if the k largest entries stay, θ_k = (their sum - radius)/k, and k is the largest with the k-th entry > θ_k.
    """
    largest = W.abs().sort(dim=1, descending=True).values
    theta = (largest.cumsum(dim=1) - radius) / torch.arange(1, W.shape[1] + 1, dtype=W.dtype, device=W.device)
    kept = (largest > theta).sum(dim=1, keepdim=True)
    shrunk = W.sign() * (W.abs() - theta.gather(1, (kept - 1).clamp_min(0))).clamp_min(0)
    return torch.where(W.abs().sum(dim=1, keepdim=True) > radius, shrunk, W)


class ImplicitGraph(nn.Module):
    """Z = φ(ÂZWᵀ + ÂXΩᵀ), with ‖W‖∞ ≤ κ < 1.

    Then |W| ⊗ Â has spectral radius at most κ, and the map contracts by κ in the maximum norm weighted by the Perron
    vector of Â. The distance bound of a solution is in the Frobenius norm, where the factor is ‖W‖₂: it is finite only
    if ‖W‖₂ < 1.

    W is projected, exactly and row by row. In training that happens in place before W is used, so that with any
    optimizer this is projected gradient descent; in evaluation the parameter stays as it is and its projection is used.
    """

    def __init__(
        self, in_channels: int, channels: int, kappa: float, activation: Activation = "relu", stop: Stop | None = None
    ) -> None:
        super().__init__()
        self.kappa, self.activation = kappa, activation
        self.stop = Stop() if stop is None else stop
        self.W = nn.Parameter(torch.empty(channels, channels))
        self.Omega = nn.Parameter(torch.empty(channels, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in ±1/√h."""
        for parameter in (self.W, self.Omega):
            nn.init.uniform_(parameter, -1 / math.sqrt(len(self.W)), 1 / math.sqrt(len(self.W)))

    def constrained(self) -> Tensor:
        """W with ‖W‖∞ ≤ κ."""
        if not self.training:
            return project_rows(self.W, self.kappa)
        with torch.no_grad():
            # a W that lies inside up to rounding is left alone: an earlier forward pass may need it for its gradient
            if bool((self.W.abs().sum(dim=1) > self.kappa * (1 + 1e-5)).any()):
                self.W.copy_(project_rows(self.W, self.kappa))
        return self.W

    def forward(self, x: Tensor, A: Adjacency, inner: InnerProduct) -> Tensor:
        """(n, in_channels), dense or CSR, to (n, channels)."""
        W, b = self.constrained(), A(project(x, self.Omega))

        def fn(z: Tensor) -> Tensor:
            y = torch.addmm(b, A(z), W.T)
            return y.relu() if self.activation == "relu" else y

        factor = float(spectral_bound(W).sqrt())
        return fixed_point(
            Contraction(fn, factor) if factor < 1 else fn,
            torch.zeros_like(b),
            stop=self.stop,
            adjoint=Implicit(Stop(self.stop.tol, 1000)),
            inner=inner,
        ).value


class IGNN(nn.Module):
    """`num_layers` equilibria, then a head; for nodes or, with pooling, for graphs.

    kappa       κ, the bound of ‖W‖∞
    adjacency   "symmetric": D^(-½)(A + I)D^(-½); "spectral": A/ρ(A)
    skip        X' = ELU(Z + XVᵀ + c) instead of X' = Z after each layer
    normalize   scale each node's last X to length 1 before the head (nodes only)
    head        "linear", or "mlp" with one hidden layer and ReLU
    dropout     before the last linear map
    activation  φ
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        *,
        task: Literal["node", "graph"] = "node",
        kappa: float = 0.9,
        adjacency: AdjacencyKind = "symmetric",
        skip: bool = False,
        normalize: bool = True,
        head: Literal["linear", "mlp"] = "linear",
        pooling: Pooling = "sum",
        dropout: float = 0.5,
        activation: Activation = "relu",
        stop: Stop | None = None,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        if not 0 < kappa < 1:
            raise ValueError(f"`kappa` must lie between 0 and 1, so that there is an equilibrium, got {kappa}.")
        self.task, self.adjacency, self.normalize, self.pooling = task, adjacency, normalize, pooling
        widths = [in_channels, *[hidden_channels] * (num_layers - 1)]
        self.layers = nn.ModuleList(ImplicitGraph(w, hidden_channels, kappa, activation, stop) for w in widths)
        self.skips = nn.ModuleList(nn.Linear(w, hidden_channels) for w in widths) if skip else None
        last = [Dropout(dropout), nn.Linear(hidden_channels, out_channels, bias=head == "mlp")]
        hidden = [nn.Linear(hidden_channels, hidden_channels), nn.ReLU()] if head == "mlp" else []
        self.head = nn.Sequential(*hidden, *last)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Scores (nodes or graphs, out_channels)."""
        check(x)
        graph = open_graph(x, edge_index, edge_weight, batch)
        A, inner = adjacency(graph, x.dtype, self.adjacency), inner_product(graph)
        for number, layer in enumerate(self.layers):
            z = layer(x, A, inner)
            if self.skips is not None:
                skip = cast(nn.Linear, self.skips[number])
                z = F.elu(z + project(x, skip.weight, skip.bias))
            x = z
        if self.task == "graph":
            x = pool(x, graph, self.pooling)
        elif self.normalize:
            x = unit_rows(x)
        scores: Tensor = self.head(x)
        return scores
