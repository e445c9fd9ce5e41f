"""Sign-preserving normalizations of the flux, from its moments.

    frozen   statistics once, at Z = 0: constants of the energy, every guarantee stays
    live     statistics of the current Z, as the paper and its published code have it: no energy

"layer" takes one statistic per graph, "instance" one per graph and channel. "before" normalizes the argument of σ,
"after" its value. A statistic is a scale of whole channels or graphs, so it commutes with the divergence and can be
applied at the nodes.
"""

import abc
import dataclasses
from typing import Literal, NamedTuple, final

import torch
from torch import Tensor

from gind.graph import Graph, Moments, diffuse_moments

__all__ = ["EdgeNorm", "FrozenNorm", "Gains", "LiveNorm", "unit_gradient"]


class Gains(NamedTuple):
    """g before and ω after σ, per graph and channel: the flux is ω σ(g v). None stands for 1."""

    before: Tensor | None = None
    after: Tensor | None = None

    def louder(self, other: Tensor | None) -> "Gains":
        """ω times another gain of the same kind."""
        if other is None or self.after is None:
            return Gains(self.before, other if self.after is None else self.after)
        return Gains(self.before, self.after * other)


@dataclasses.dataclass(frozen=True)
class EdgeNorm(abc.ABC):
    """Divides by a root mean square over the edges of a graph and multiplies by γ, a learned scale per channel."""

    flavor: Literal["layer", "instance"] = "layer"
    place: Literal["before", "after"] = "before"
    eps: float = 1e-5
    start: float = 1.0
    """γ before training; the published code has 0.5 for "layer" with 256 channels or more"""

    def __post_init__(self) -> None:
        if self.flavor not in ("layer", "instance"):
            raise ValueError(f"`flavor` must be 'layer' or 'instance', got {self.flavor!r}.")
        if self.place not in ("before", "after"):
            raise ValueError(f"`place` must be 'before' or 'after' (σ), got {self.place!r}.")
        if not self.eps > 0:
            raise ValueError(f"`eps` must be positive, got {self.eps}.")
        if not abs(self.start) < float("inf"):
            raise ValueError(f"`start` must be finite, got {self.start}.")

    @property
    @abc.abstractmethod
    def live(self) -> bool:
        """Whether the statistics follow Z."""

    @abc.abstractmethod
    def gains(self, y: Tensor, graph: Graph, activation: str, gamma: Tensor) -> Gains:
        """The gains at node potentials y (n x H), the flux being σ(Gy)."""


@final
@dataclasses.dataclass(frozen=True)
class FrozenNorm(EdgeNorm):
    """Statistics at the injected potentials (Z = 0), then constant for the solve: ω and g of the energy.

    |γ| is used, since only positive scales keep the energy convex.
    """

    @property
    def live(self) -> bool:
        """No."""
        return False

    def gains(self, y: Tensor, graph: Graph, activation: str, gamma: Tensor) -> Gains:
        """|γ| / √(mean square + ε), of v before σ or of σ(v) after it."""
        activation = "identity" if self.place == "before" else activation
        _, moments = diffuse_moments(y, graph, activation, primitive=False)
        square = _average(moments.square, graph.edge_mass, self.flavor)
        scale = gamma.abs() / (square + self.eps).sqrt().to(y.dtype)
        return Gains(before=scale) if self.place == "before" else Gains(after=scale)


@final
@dataclasses.dataclass(frozen=True)
class LiveNorm(EdgeNorm):
    """Statistics of the current Z. After σ as in the published code (the default), or before σ as in the paper.

    The published "layer" divides by the standard deviation + ε on a single graph, and by √(mean square + ε) in a batch.
    Statistics are those of stored edges: an undirected edge counts in both directions, a self-loop once, without flux.
    γ may have any sign.
    """

    place: Literal["before", "after"] = "after"

    @property
    def live(self) -> bool:
        """Yes: a map with this normalization has no energy."""
        return True

    def gains(self, y: Tensor, graph: Graph, activation: str, gamma: Tensor) -> Gains:
        """γ over the spread of v (before) or σ(v) (after)."""
        before = self.place == "before"
        _, moments = diffuse_moments(y, graph, "identity" if before else activation, primitive=False)
        scale = self.scale(moments, graph, gamma)
        return Gains(before=scale) if before else Gains(after=scale)

    def scale(self, moments: Moments, graph: Graph, gamma: Tensor) -> Tensor:
        """γ over the spread, from the moments of what is normalized: (graphs, H)."""
        mass = self.mass(graph)
        if self.deviates(graph):
            spread = _variance(moments, mass, graph.directed).sqrt() + self.eps
        else:
            spread = (_average(moments.square, mass, self.flavor) + self.eps).sqrt()
        return gamma / spread.to(gamma.dtype)

    def mass(self, graph: Graph) -> Tensor:
        """(graphs,) what edges count: an undirected one stands for its two directions, a self-loop is stored once."""
        return graph.edge_mass + _loop_mass(graph) * (1.0 if graph.directed else 0.5)

    def deviates(self, graph: Graph) -> bool:
        """Whether the spread is the standard deviation over all edges and channels."""
        return self.flavor == "layer" and self.place == "after" and graph.batch is None


def unit_gradient(y: Tensor, graph: Graph) -> Tensor:
    """y over the root mean square of Gy (edges and channels of a graph), so that a factor of y drops out."""
    # in units of the largest entry: squares of small numbers would vanish
    unit = y.detach().abs().amax() if y.numel() else y.new_ones(())
    y = y / torch.where(unit > 0, unit, 1.0)
    _, moments = diffuse_moments(y, graph, "identity", primitive=False)
    square = _average(moments.square, graph.edge_mass, "layer")
    scale = torch.where(square > 0, square, 1.0).rsqrt().to(y.dtype)
    return y * (scale if graph.batch is None else scale[graph.batch])


def _average(total: Tensor, mass: Tensor, flavor: str) -> Tensor:
    """Mean over edges: (graphs, H) sums to (graphs, H) or, over channels as well, (graphs, 1)."""
    mean = total / mass.clamp_min(torch.finfo(mass.dtype).tiny)[:, None]
    return mean.mean(dim=1, keepdim=True) if flavor == "layer" else mean


def _variance(moments: Moments, mass: Tensor, directed: bool) -> Tensor:
    """Variance over all edges and channels: (graphs, 1). Of the two directions of an edge the mean is 0."""
    count = (mass[:, None] * moments.sigma.shape[1]).clamp_min(1)
    variance = moments.square.sum(dim=1, keepdim=True) / count
    if directed:
        variance = variance - (moments.sigma.sum(dim=1, keepdim=True) / count).square()
    # without flux it is 0, where a root has no slope
    return variance.clamp_min(torch.finfo(variance.dtype).tiny)


def _loop_mass(graph: Graph) -> Tensor:
    if graph.batch is None:
        return graph.loops.sum().reshape(1)
    return graph.loops.new_zeros(graph.num_graphs).index_add_(0, graph.batch, graph.loops)
