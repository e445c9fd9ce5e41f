"""The published GIND in plain PyTorch, with every edge tensor stored: the reference of speed, and of the parity tests.

For stored edges e = (i, j), both directions of an undirected one, d_i = edges that leave i (+ 1), s = (2d)^(-1/2):

    v_e = s_i y_i - s_j y_j,   y = ZKᵀ + bUᵀ + c        (row variant: v_e = (s_i z_i - s_j z_j)Kᵀ + (b_i - b_j)Uᵀ)
    Z  ← (1 - α)Z - α m ⊙ [ s_i (Σ_{e leaves i} ν(tanh v_e) - Σ_{e enters i} ν(tanh v_e)) ] K

for each of L layers in a row, `steps` times, the last `grad` times with gradient; scores = head(b + Z) (row: b + sZ).
Parameters have the names and shapes of `gind.GIND`, so `load_state_dict` copies them.
"""

import dataclasses
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import record_function

__all__ = ["EdgeStoring", "Settings", "store_edges"]

Norm = Literal["layer", "instance"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a published configuration says of the model."""

    alpha: float
    steps: int
    grad: int
    layers: int = 1
    norm: Norm = "layer"
    row: bool = True
    separate: bool = True
    eta: float = 0.0
    dropout: float = 0.0
    flux_dropout: float = 0.0
    mlp: bool = False
    pooled: bool = False


def store_edges(
    edge_index: Tensor, num_nodes: int, *, self_loops: bool, directed: bool = False, once: bool = False
) -> tuple[Tensor, Tensor]:
    """The stored edges (2, E), each once per direction, and s (n, 1).

    `once` keeps an undirected edge in one direction, without loops and with s = d^(-1/2): what PPI runs with.
    """
    edges = edge_index if directed else torch.cat([edge_index, edge_index.flip(0)], dim=1)
    key = torch.unique(edges[0] * num_nodes + edges[1])
    edges = torch.stack([key // num_nodes, key % num_nodes])
    degree = torch.bincount(edges[0], minlength=num_nodes).double() + float(self_loops)
    s = torch.where(degree > 0, ((1 if once else 2) * degree).rsqrt(), 0.0)[:, None]
    return (edges[:, edges[0] < edges[1]] if once else edges), s


class _Update(nn.Module):
    """One layer's K, U, c and γ, named as in `Diffusion`."""

    def __init__(self, channels: int, separate: bool) -> None:
        super().__init__()
        self.K = nn.Parameter(torch.empty(channels, channels))
        self.U = nn.Parameter(torch.empty(channels, channels)) if separate else None
        self.injection_offset = nn.Parameter(torch.zeros(channels)) if separate else None
        self.gamma = nn.Parameter(torch.ones(channels))
        for matrix in (self.K, self.U):
            if matrix is not None:
                nn.init.kaiming_normal_(matrix, nonlinearity="relu")


class _Layers(nn.Module):
    def __init__(self, channels: int, settings: Settings) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Update(channels, settings.separate) for _ in range(settings.layers))


class EdgeStoring(nn.Module):
    """`model(x, edges, s, batch)` with what `store_edges` made."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = nn.Linear(in_channels, hidden)
        self.layers = nn.ModuleList([_Layers(hidden, settings)])
        drop = nn.Dropout(settings.dropout)
        if settings.mlp:
            inner = [nn.Identity(), nn.Linear(hidden, hidden), nn.ELU(), drop, nn.Linear(hidden, out_channels)]
            self.head = nn.Sequential(*inner)
        else:
            self.head = nn.Sequential(drop, nn.Linear(hidden, out_channels))

    @property
    def updates(self) -> list[_Update]:
        """The layers."""
        return [module for module in self.modules() if isinstance(module, _Update)]

    def forward(self, x: Tensor, edges: Tensor, s: Tensor, batch: Tensor | None = None) -> Tensor:
        """Scores of the nodes, or of the graphs of the batch."""
        options, s = self.settings, s.to(x.dtype)
        with record_function("gind::features"):  # a name for `gind.bench.profile`
            b = self.encoder(F.dropout(x, options.dropout, self.training))
        masks = [F.dropout(torch.ones_like(b), options.flux_dropout, self.training) for _ in self.updates]
        z = torch.zeros_like(b)
        with torch.no_grad():
            for _ in range(options.steps - options.grad):
                z = self._pass(z, b, edges, s, batch, masks)
        for _ in range(options.grad):
            z = self._pass(z, b, edges, s, batch, masks)
        hidden = b + (s * z if options.row else z)
        if options.pooled:
            assert batch is not None
            hidden = hidden.new_zeros(int(batch.max()) + 1, hidden.shape[1]).index_add(0, batch, hidden)
        scores: Tensor = self.head(hidden)
        return scores

    def _pass(
        self, z: Tensor, b: Tensor, edges: Tensor, s: Tensor, batch: Tensor | None, masks: list[Tensor]
    ) -> Tensor:
        """The regularizer's step, then every layer."""
        if self.settings.eta:
            z = z - self.settings.eta * _laplacian(z, edges, s)
        for layer, mask in zip(self.updates, masks, strict=True):
            step = mask * self._update(layer, z, b, edges, s, batch)
            z = self.settings.alpha * step + (1 - self.settings.alpha) * z
        return z

    def _update(self, layer: _Update, z: Tensor, b: Tensor, edges: Tensor, s: Tensor, batch: Tensor | None) -> Tensor:
        tail, head = edges
        injected = F.linear(b, layer.K if layer.U is None else layer.U, layer.injection_offset)
        y = s * F.linear(z, layer.K) + (injected if self.settings.row else s * injected)
        flux = torch.tanh(y.index_select(0, tail) - y.index_select(0, head))
        flux = layer.gamma * _normalize(flux, self.settings.norm, None if batch is None else batch[tail])
        leaving = torch.zeros_like(y).index_add(0, tail, flux * s[tail])
        entering = torch.zeros_like(y).index_add(0, head, flux * s[head])
        return -(leaving - entering) @ layer.K


def _laplacian(z: Tensor, edges: Tensor, s: Tensor) -> Tensor:
    """∂/∂Z of R = mean over nodes of Σ ‖s_i z_i - s_j z_j‖² over the stored edges, by autograd."""
    with torch.enable_grad():
        point = z if z.requires_grad else z.detach().requires_grad_()
        scaled = s * point
        penalty = (scaled[edges[0]] - scaled[edges[1]]).square().sum() / len(z)
        (gradient,) = torch.autograd.grad(penalty, point, create_graph=True)
    return gradient


def _normalize(flux: Tensor, norm: Norm, graph: Tensor | None) -> Tensor:
    """ν: by the deviation of the whole tensor on a single graph, by root mean squares per graph in a batch."""
    if graph is None:
        if norm == "layer":
            return flux / (flux.std(unbiased=False) + 1e-5)
        return flux / (flux.square().mean(dim=0) + 1e-5).sqrt()
    count = int(graph.max()) + 1 if len(graph) else 1
    size = torch.bincount(graph, minlength=count).clamp_min(1)[:, None]
    mean = flux.new_zeros(count, flux.shape[1]).index_add(0, graph, flux.square()) / size
    if norm == "layer":
        mean = mean.mean(dim=1, keepdim=True)
    return flux / (mean + 1e-5).sqrt()[graph]
