"""Scalings s of the incidence matrix, Ĝ = G diag(s), and bounds of ‖√w Ĝ‖."""

import abc
import dataclasses
from typing import final

import torch
from torch import Tensor

from gind.graph.radius import collatz_wielandt
from gind.graph.structure import Graph, lasting

__all__ = ["Identity", "OutDegree", "Row", "Scaling", "Symmetric", "incidence_norm"]

_PATIENCE = 20  # steps without progress


@dataclasses.dataclass(frozen=True)
class Scaling(abc.ABC):
    """A positive number per node, s_i = (2 d_i)^(-1/2), for some notion of the degree d_i."""

    @abc.abstractmethod
    def degree(self, graph: Graph) -> Tensor | None:
        """(n,) float64, or None if the scaling is 1."""

    @property
    def row(self) -> bool:
        """Whether the injection enters unscaled and the output is scaled back: the paper's row-normalized variant."""
        return False

    @property
    def plain_injection(self) -> bool:
        """Whether what is injected is not scaled, so that a constant has no differences."""
        return self.row

    @property
    def contracts(self) -> bool:
        """Whether ‖√w Ĝ‖ ≤ 1 is known to hold on every graph."""
        return False

    @final
    def vector(self, graph: Graph) -> Tensor:
        """(n,) float64: s. A node of degree 0 gets s = 0: it has no flux, and an infinite scale would make NaN."""

        def build() -> Tensor:
            degree = self.degree(graph)
            if degree is None:
                return torch.ones(graph.num_nodes, dtype=torch.float64, device=graph.device)
            return torch.where(degree > 0, (2 * degree).rsqrt(), 0.0)

        return graph.keep((type(self), self), build)


@dataclasses.dataclass(frozen=True)
class _ByDegree(Scaling):
    """s_i = (`factor` d_i)^(-1/2), d_i = weights at the node, + 1 if `augmented`, + its self-loops if `loops`."""

    augmented: bool = True
    loops: bool = dataclasses.field(default=False, kw_only=True)
    factor: float = dataclasses.field(default=2.0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 < self.factor < float("inf"):
            raise ValueError(f"`factor` of a scaling must be positive and finite, got {self.factor}.")

    @final
    def degree(self, graph: Graph) -> Tensor:
        """factor/2 · d, so that s = (2 · degree)^(-1/2)."""
        degree = self._incident(graph) + float(self.augmented)
        if self.loops:
            degree = degree + graph.loops
        return self.factor / 2 * degree

    @abc.abstractmethod
    def _incident(self, graph: Graph) -> Tensor:
        """(n,) the weights that count at each node."""


@final
@dataclasses.dataclass(frozen=True)
class Symmetric(_ByDegree):
    """d = sum of incident weights + 1 (`augmented`): Z = -Ĝᵀσ(Ĝ(Z + b)Kᵀ)K."""

    def _incident(self, graph: Graph) -> Tensor:
        return graph.degree

    @property
    def contracts(self) -> bool:
        """Unless `factor` is less than 2: 2 d_i dominates the row sums of GᵀwG."""
        return self.factor >= 2


@final
@dataclasses.dataclass(frozen=True)
class Row(_ByDegree):
    """The degree of `Symmetric`, but Z̄ = -Ĝᵀσ(Ĝ(Z̄ + b/s)Kᵀ)K with output sZ̄ (appendix D of the paper)."""

    def _incident(self, graph: Graph) -> Tensor:
        return graph.degree

    @property
    def row(self) -> bool:
        """Yes."""
        return True

    @property
    def contracts(self) -> bool:
        """Unless `factor` is less than 2: 2 d_i dominates the row sums of GᵀwG."""
        return self.factor >= 2


@final
@dataclasses.dataclass(frozen=True)
class OutDegree(_ByDegree):
    """d = weights of the edges that leave a node (+ 1 if augmented), for graphs built with `directed=True`.

    Then ‖Ĝ‖ can be far above 1; it is bounded numerically and enters the smoothness. `rows` selects the
    row-normalized variant.
    """

    rows: bool = False

    def _incident(self, graph: Graph) -> Tensor:
        if not graph.directed:
            raise ValueError(
                "OutDegree needs a graph built with `directed=True`: the edges of an undirected graph have an "
                "arbitrary orientation. Use Symmetric() or Row()."
            )
        return graph.out_degree

    @property
    def row(self) -> bool:
        """As chosen."""
        return self.rows


@final
@dataclasses.dataclass(frozen=True)
class Identity(Scaling):
    """s = 1."""

    @property
    def plain_injection(self) -> bool:
        """Yes."""
        return True

    def degree(self, graph: Graph) -> None:
        """None: no scaling."""
        return


@lasting
def incidence_norm(graph: Graph, scaling: Scaling, steps: int = 300, tol: float = 1e-3) -> Tensor:
    """(graphs,) float64: an upper bound of ‖√w Ĝ‖₂² per graph, the largest eigenvalue of s GᵀwG s.

    With D the degrees and A the weights, GᵀwG = D - A, whose spectral radius is at most that of the nonnegative
    matrix Q = s(D + A)s, of which `collatz_wielandt` gives a bound.
    """
    if scaling.contracts:
        return torch.ones(graph.num_graphs, dtype=torch.float64, device=graph.device)
    key = (incidence_norm, type(scaling), scaling)
    return graph.keep(key, lambda: _bound(graph, scaling.vector(graph), steps, tol))


def _bound(graph: Graph, s: Tensor, steps: int, tol: float) -> Tensor:
    weight = torch.ones_like(graph.tail, dtype=torch.float64) if graph.weight is None else graph.weight

    def apply(x: Tensor) -> Tensor:
        sx = s * x
        neighbors = torch.zeros_like(sx)
        neighbors.index_add_(0, graph.tail, weight * sx[graph.head])
        neighbors.index_add_(0, graph.head, weight * sx[graph.tail])
        return s * (graph.degree * sx + neighbors)

    # averaging with x damps the sign-alternating part of a bipartite graph
    return collatz_wielandt(graph, apply, steps=steps, tol=tol, patience=_PATIENCE, keep=0.5, floor=1e-12)
