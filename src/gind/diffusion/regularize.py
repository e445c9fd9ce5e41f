"""Regularizers of the equilibrium: a term of the energy, or a gradient step composed with the map."""

import abc
import dataclasses
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from gind.graph import Graph, diffuse

__all__ = ["Decorrelation", "Laplacian", "LaplacianStep", "Regularizer", "StepRegularizer"]


@dataclasses.dataclass(frozen=True)
class Regularizer:
    """Something the equilibrium is pulled towards, with strength η: a `Laplacian` or a `StepRegularizer`."""

    eta: float

    def __post_init__(self) -> None:
        if not 0 <= self.eta < float("inf"):
            raise ValueError(f"`eta` must be a finite number >= 0, got {self.eta}.")


@final
@dataclasses.dataclass(frozen=True)
class Laplacian(Regularizer):
    """η‖√w ĜZ‖², a term of the energy: linked nodes are pulled together, every guarantee stays."""


@dataclasses.dataclass(frozen=True)
class StepRegularizer(Regularizer, abc.ABC):
    """Z ← Z - η ∂R/∂Z before each application of the map. The composition has no energy: no bound."""

    @abc.abstractmethod
    def gradient(self, z: Tensor, s: Tensor, graph: Graph) -> Tensor:
        """∂R/∂Z at z (n x h), with the scaling s (n x 1)."""

    @final
    def step(self, z: Tensor, s: Tensor, graph: Graph) -> Tensor:
        """Z - η ∂R/∂Z."""
        return z - self.eta * self.gradient(z, s, graph)


@final
@dataclasses.dataclass(frozen=True)
class LaplacianStep(StepRegularizer):
    """R = mean over nodes i of Σ_j ‖s_i z_i - s_j z_j‖², j over its neighbors, as in the published code.

    On an undirected graph every edge is seen from both of its ends; with `directed=True`, once as given.
    """

    def gradient(self, z: Tensor, s: Tensor, graph: Graph) -> Tensor:
        """2c/n · Ĝᵀw ĜZ per graph of n nodes, c = 2 for an undirected graph and 1 for a directed one."""
        return self.factor(s, graph) * diffuse(s * z, graph, "identity")

    def factor(self, s: Tensor, graph: Graph) -> Tensor:
        """(n, 1) what Gᵀw G(sZ) is multiplied by."""
        seen = 2.0 if graph.directed else 4.0
        per_graph = seen / graph.node_count.clamp_min(1).to(s.dtype)
        return s * (per_graph if graph.batch is None else per_graph[graph.batch][:, None])


@final
@dataclasses.dataclass(frozen=True)
class Decorrelation(StepRegularizer):
    """R = mean square of the correlations between different channels that exceed `threshold` in size.

    Channels are columns of Z over the nodes of one graph, scaled to length 1. Not convex, whatever the paper says.
    """

    threshold: float = 0.5

    def gradient(self, z: Tensor, s: Tensor, graph: Graph) -> Tensor:
        """The gradient of each graph on its own."""
        if graph.batch is None:
            return self._gradient(z)
        out = torch.zeros_like(z)
        for number in range(graph.num_graphs):
            rows = (graph.batch == number).nonzero()[:, 0]
            out = out.index_copy(0, rows, self._gradient(z[rows]))
        return out

    def _gradient(self, z: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(z, dim=0).clamp_min(1e-12)
        unit = z / length
        correlation = unit.T @ unit
        off_diagonal = correlation - torch.diag(correlation.diagonal())
        excess = F.hardshrink(off_diagonal, self.threshold)
        # R = ΣS²/h², S symmetric: ∂R/∂unit = 4 unit S / h²; then through the scaling of the columns
        slope = 4 * unit @ excess / excess.numel()
        gradient: Tensor = (slope - unit * (unit * slope).sum(dim=0)) / length
        return gradient
