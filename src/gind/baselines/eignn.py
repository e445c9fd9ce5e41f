"""EIGNN (Liu et al., 2021): a linear equilibrium, in closed form, by elimination or by conjugate gradients."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Literal, final, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gind.baselines.adjacency import Adjacency, adjacency, open_graph
from gind.baselines.forest import forest
from gind.baselines.unit import unit_rows
from gind.diffusion.map import inner_product
from gind.equilibrium import Energy, Implicit, InnerProduct, NewtonCG, Stop, fixed_point
from gind.equilibrium.energy import Map
from gind.features import check, dropout, encode, make_linear, project
from gind.graph import Graph

__all__ = ["EIGNN", "LinearEnergy"]

Method = Literal["auto", "closed", "elimination", "iterative"]
_CLOSED_UP_TO = 1000  # nodes
_EPSILON = 1e-12


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LinearEnergy(Energy):
    """E(Z) = (½⟨Z, Z - γSZg⟩ - ⟨X, Z⟩)/(1 - q), whose minimizer is Z = γSZg + X; q = γ max λ(g) ≥ ‖γ S ⊗ g‖.

    In the basis of its eigenvectors g = diag(λ) for the solves, O(n d) per product. The one application that carries
    gradients is done with the matrix itself, so that they are those of g, not of its eigenvalues.
    """

    gamma: float
    S: Adjacency
    g: Tensor
    """(d, d), with gradient"""
    eigenvalues: Tensor | None
    """(d,) in [0, 1]: λ, if g is diagonal up to rounding; None in any other basis"""
    X: Tensor
    inner: InnerProduct

    @functools.cached_property
    def slack(self) -> float:
        """1 - q."""
        return 1 - self.gamma * (1.0 if self.eigenvalues is None else float(self.eigenvalues.max()))

    def __call__(self, z: Tensor) -> Tensor:
        """z - ∇E(z)."""
        moved = self.S(z) @ self.g if torch.is_grad_enabled() else self._move(z)
        return z - (z - self.gamma * moved - self.X) / self.slack

    def value(self, z: Tensor) -> Tensor:
        """E(z) per graph."""
        return self.inner.dot(z, self.hessian(z)(z)) / 2 - self.inner.dot(self.X.detach(), z) / self.slack

    def hessian(self, z: Tensor) -> Map:
        """u ↦ (u - γSug)/(1 - q)."""
        return lambda u: (u - self.gamma * self._move(u)) / self.slack

    @property
    def smoothness(self) -> Tensor:
        """L = (1 + q)/(1 - q)."""
        L = (2 - self.slack) / self.slack
        return torch.full((self.inner.count,), L, dtype=torch.float64, device=self.X.device)

    def rounding(self, z: Tensor) -> Tensor:
        """What diag(λ) leaves out of g, or √d units in a product with g; and a few units of each term."""
        unit = 4 * torch.finfo(z.dtype).eps
        if self.eigenvalues is None:
            off = unit * math.sqrt(len(self.g))
        else:
            off = float(torch.linalg.matrix_norm(self.g.detach() - self.eigenvalues.diag()))
        return ((self.gamma * off + 2 * unit) * self.inner.norm(z) + unit * self.inner.norm(self.X)) / self.slack

    def _move(self, z: Tensor) -> Tensor:
        """SZg, without gradient."""
        return self.S(z) @ self.g.detach() if self.eigenvalues is None else self.S(z) * self.eigenvalues


class EIGNN(nn.Module):
    """Z = γSZg(F) + X,  g(F) = FᵀF/(‖FᵀF‖_F + ε),  scores = ZBᵀ;  S = D^(-½)(A + I)D^(-½).

    ‖g(F)‖ < 1 and ‖S‖ = 1, so for 0 < γ < 1 there is one equilibrium, whatever F is. With g = QΛQᵀ it is computed as
    Z̃ = ZQ, where the channels are independent: Z̃_j = γλ_j S Z̃_j + (XQ)_j. Q is a constant change of basis, so nothing
    is differentiated through the eigenvectors, and gradients are exact also where eigenvalues coincide.

    X are the features themselves, and F is in_channels x in_channels; `hidden_channels` counts only with `encode`,
    where X is a linear map of the features.

    method          "closed": Z̃ = Q_S[(Q_SᵀXQ)_ij / (1 - γ λ_S,i λ_j)], by the eigenvectors of S, O(n³) once per graph;
                    "elimination": on graphs without cycles, such as chains, O(nd), and exact also where Z fades;
                    "iterative": conjugate gradients, without Q if d > 2n, where O(d³) would cost more than it saves;
                    "auto": iterative if d > 2n; else elimination without cycles if Z is normalized, closed for a single
                    graph of up to 1000 nodes, iterative
    normalize       scale each node's Z to length 1 before B, as its authors do on chains
    dropout         of the features
    output_dropout  before B, of the normalized Z if both are there
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        *,
        gamma: float = 0.8,
        method: Method = "auto",
        encode: bool = False,
        normalize: bool = False,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
        stop: Stop | None = None,
    ) -> None:
        super().__init__()
        if num_layers != 1:
            raise ValueError(f"EIGNN has one equilibrium: `num_layers` must be 1, got {num_layers}.")
        if not 0 < gamma < 1:
            raise ValueError(f"`gamma` must lie between 0 and 1, so that there is an equilibrium, got {gamma}.")
        if method not in get_args(Method):
            raise ValueError(f"`method` must be one of {', '.join(get_args(Method))}, got {method!r}.")
        for name, rate in (("dropout", dropout), ("output_dropout", output_dropout)):
            if not 0 <= rate < 1:
                raise ValueError(f"`{name}` must lie in [0, 1), got {rate}.")
        self.gamma, self.normalize, self.dropout, self.output_dropout = gamma, normalize, dropout, output_dropout
        self.method: Method = method
        self.stop = Stop() if stop is None else stop
        self.encoder = make_linear(in_channels, hidden_channels) if encode else None
        width = hidden_channels if encode else in_channels
        self.F = nn.Parameter(torch.empty(width, width))
        self.B = nn.Parameter(torch.empty(out_channels, width))
        nn.init.xavier_uniform_(self.F)
        nn.init.normal_(self.B, std=1 / math.sqrt(width))

    def metric(self) -> Tensor:
        """g(F)."""
        square = self.F.T @ self.F
        size: Tensor = torch.linalg.matrix_norm(square)
        return square / (size + _EPSILON)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        check(x)
        graph = open_graph(x, edge_index, edge_weight, batch)
        if self.encoder is not None:
            x = encode(x, self.encoder, self.dropout, self.training)
        wide = x.shape[1] > 2 * len(x)
        method = self._choose(graph, x.dtype, wide)
        energy, Q = self._bind(x, graph, diagonal=method != "iterative" or not wide)
        if method == "iterative":
            return self._scores(self._iterative(energy), Q)
        return self._scores(self._direct(energy, self._inverse(energy, graph, method)), Q)

    def _choose(self, graph: Graph, dtype: torch.dtype, wide: bool) -> Method:
        if self.method != "auto":
            return self.method
        if wide:
            return "iterative"
        if self.normalize and forest(graph, dtype) is not None:
            return "elimination"
        return "closed" if graph.num_graphs == 1 and graph.num_nodes <= _CLOSED_UP_TO else "iterative"

    def _scores(self, z: Tensor, Q: Tensor | None) -> Tensor:
        """Of the equilibrium in the basis Q. A length is the same in every orthogonal basis, a dropout is not."""
        if self.normalize:
            z = unit_rows(z)
        if Q is not None and self.training and self.output_dropout > 0:
            z, Q = z @ Q.T, None
        return F.linear(dropout(z, self.output_dropout, self.training), self.B if Q is None else self.B @ Q)

    def _bind(self, x: Tensor, graph: Graph, diagonal: bool) -> tuple[LinearEnergy, Tensor | None]:
        """The energy of this input, and the basis it is written in."""
        g, S, inner = self.metric(), adjacency(graph, x.dtype), inner_product(graph)
        p = 0.0 if self.encoder is not None else self.dropout
        if not diagonal:
            dense = x if x.layout == torch.strided else x.to_dense()
            return LinearEnergy(self.gamma, S, g, None, dropout(dense, p, self.training), inner), None
        with torch.no_grad():
            eigenvalues, Q = torch.linalg.eigh(g)
        X = project(x, Q.T, dropout=p, training=self.training)
        return LinearEnergy(self.gamma, S, Q.T @ g @ Q, eigenvalues.clamp(0, 1), X, inner), Q

    def _iterative(self, energy: LinearEnergy) -> Tensor:
        # one Newton step solves a quadratic problem, if its linear solve is as accurate as the whole is to be
        solver = NewtonCG(forcing=max(self.stop.aim(energy.X.dtype) / float(energy.smoothness.max()) / 2, 1e-15))
        adjoint = Implicit(Stop(self.stop.tol, 1000))
        z0 = torch.zeros_like(energy.X)
        return fixed_point(energy, z0, solver=solver, stop=self.stop, adjoint=adjoint, inner=energy.inner).value

    def _inverse(self, energy: LinearEnergy, graph: Graph, method: Method) -> Callable[[Tensor], Tensor]:
        """(I - γ S ⊗ diag(λ))⁻¹, by the eigenvectors of S or by elimination."""
        assert energy.eigenvalues is not None
        if method == "elimination":
            tree = forest(graph, energy.X.dtype)
            if tree is None:
                raise ValueError('`method="elimination"` is for graphs without cycles, this one has some: use "auto".')
            return tree.inverse(self.gamma * energy.eigenvalues)
        spectrum, Q = _spectrum(graph, energy.S)
        gain = 1 / (1 - self.gamma * spectrum[:, None] * energy.eigenvalues)
        return lambda rhs: Q @ (gain * (Q.T @ rhs))

    def _direct(self, energy: LinearEnergy, inverse: Callable[[Tensor], Tensor]) -> Tensor:
        with torch.no_grad():
            # measures the residual; 0 steps, unless rounding is above the tolerance
            z = fixed_point(energy, inverse(energy.X), solver=NewtonCG(), stop=self.stop, inner=energy.inner).value
        if not torch.is_grad_enabled():
            return z
        # the derivative of the equilibrium is (I - γ S ⊗ g)⁻¹ applied to that of the map
        return z + inverse((energy(z) - z) * energy.slack)


def _spectrum(graph: Graph, S: Adjacency) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of S, in its precision, computed once per graph in float64."""
    dtype = S.values.dtype
    return graph.keep((_spectrum, dtype), lambda: _eigenvectors(adjacency(graph, torch.float64), dtype))


def _eigenvectors(S: Adjacency, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    spectrum, Q = torch.linalg.eigh(S.dense())
    return spectrum.clamp(-1, 1).to(dtype), Q.to(dtype)
