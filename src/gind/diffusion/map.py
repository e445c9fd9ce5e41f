"""One application of the update, with everything that is fixed during a solve bound to it.

    f(Z) = -m ⊙ (Ĝᵀ w ω σ(g Ĝ(ZKᵀ + B)) K)        m: dropout mask, 0 or 1/(1 - p)

In terms of potentials y = s ⊙ ZKᵀ + C at the nodes, where C = s ⊙ B is what is injected. Where each end of an edge has
its own matrix, K holds both, and a row of ZKᵀ is that of two nodes of the double cover, to which y, s, C and G belong.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from gind.diffusion import onecall, steps
from gind.diffusion.edge_norm import EdgeNorm, Gains, LiveNorm
from gind.diffusion.regularize import StepRegularizer
from gind.diffusion.spectral import spectral_bound
from gind.equilibrium import Energy
from gind.equilibrium.descent import Descended, Descent, Repeatable
from gind.equilibrium.energy import Map
from gind.equilibrium.inner import Blocks, InnerProduct, Whole
from gind.graph import Graph, diffuse, diffuse_jvp, diffuse_moments, diffuse_secant
from gind.kernels.onecall import Layer
from gind.kernels.steps import Steps

__all__ = ["DiffusionEnergy", "DiffusionMap", "LiveMap", "inner_product", "zeros"]


def inner_product(graph: Graph) -> InnerProduct:
    """One problem per graph of the batch."""
    return Whole() if graph.batch is None else Blocks(graph.batch, graph.num_graphs)


def zeros(like: Tensor) -> Tensor:
    """One zero seen from everywhere: a start that costs no memory, and no product."""
    return like.new_zeros(()).expand(like.shape)


def is_zero(z: Tensor) -> bool:
    """Whether z is made by `zeros`."""
    return not any(z.stride()) and z.numel() > 1 and not z.requires_grad and not z[:1, :1].any()


@dataclasses.dataclass(frozen=True, eq=False)
class DiffusionMap(abc.ABC):
    """What every update has."""

    K: Tensor
    """(H, h); with own ends (2H, h), that of tails above that of heads"""
    C: Tensor
    """(N, H): the injected potentials"""
    s: Tensor
    """(N, 1): the scaling of the incidence matrix"""
    graph: Graph
    """n nodes"""
    edges: Graph
    """N nodes: `graph`, or its double cover"""
    activation: str
    mask: Tensor | None
    """(n, h): 0 or 1/(1 - dropout), None without dropout"""

    @abc.abstractmethod
    def __call__(self, z: Tensor) -> Tensor:
        """f(z)."""

    def relaxed(self, z: Tensor, alpha: float) -> Tensor:
        """(1 - α) z + α f(z), the paper's skip connection."""
        return torch.lerp(z, self(z), alpha)

    @final
    def potential(self, z: Tensor) -> Tensor:
        """Y = s ⊙ ZKᵀ + C, a row for each node of `edges`."""
        if is_zero(z):
            return self.C
        product = self.see(z)
        # without gradient in place: memory traffic is what an iteration costs on large graphs
        return torch.addcmul(self.C, product, self.s, out=None if torch.is_grad_enabled() else product)

    @final
    def see(self, z: Tensor) -> Tensor:
        """ZKᵀ, (n, h) to (N, H)."""
        return (z @ self.K.T).reshape(self.C.shape)

    @final
    def collect(self, flux: Tensor, K: Tensor | None = None) -> Tensor:
        """FK, the transpose of `see`: (N, H) to (n, h)."""
        return flux.reshape(self.graph.num_nodes, self.K.shape[0]) @ (self.K if K is None else K)

    @final
    def update(self, y: Tensor, gains: Gains, alpha: float = 1) -> Tensor:
        """-α Ĝᵀ w ω σ(g Gy) K, masked, from the potentials."""
        flux = diffuse(self.amplify(gains.before, y), self.edges, self.activation)
        del y
        return self.gather(flux, gains.after, alpha)

    @final
    def gather(self, flux: Tensor, after: Tensor | None, alpha: float = 1) -> Tensor:
        """-α diag(s) ω flux K, masked, from the flux Gᵀw σ(·) at the nodes, which is overwritten without gradient."""
        K = self.K if alpha == 1 else alpha * self.K
        if after is not None and self.graph.batch is None and self.edges is self.graph:
            K = after.T * K  # one gain for all nodes: cheaper there
        else:
            flux = self.amplify(after, flux)
        flux = torch.mul(flux, -self.s, out=None if torch.is_grad_enabled() else flux)
        return self.masked(self.collect(flux, K))

    @final
    def amplify(self, gain: Tensor | None, y: Tensor) -> Tensor:
        """Multiply by a gain per graph and channel."""
        if gain is None:
            return y
        return y * (gain if self.edges.batch is None else gain[self.edges.batch])

    @final
    def masked(self, z: Tensor) -> Tensor:
        """m ⊙ z."""
        return z if self.mask is None else self.mask * z


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LiveMap(DiffusionMap, Repeatable):
    """An update without an energy: the normalization follows Z, or a regularizer's step comes before the map."""

    edge_norm: EdgeNorm | None
    gamma: Tensor | None
    gains: Gains
    """those that are constant during a solve"""
    regularizer: StepRegularizer | None
    alpha: float

    def __call__(self, z: Tensor) -> Tensor:
        """(1 - α) z' + α f(z'), z' = z after the regularizer's step."""
        return self.relaxed(z, self.alpha)

    def relaxed(self, z: Tensor, alpha: float) -> Tensor:
        """(1 - α) z' + α f(z')."""
        if self.regularizer is not None:
            z = self.regularizer.step(z, self.s, self.graph)
        update = self._update(self.potential(z), alpha)
        return update if is_zero(z) or alpha == 1 else update.add_(z, alpha=1 - alpha)

    def repeat(self, z: Tensor, times: int) -> Tensor | None:
        """In compiled code on the CPU, where there is some for these options and it pays."""
        return steps.repeat(self._steps, self, z, times) if steps.covered(self) else None

    @functools.cached_property
    def _steps(self) -> Steps:
        return steps.make_steps(self)

    def _update(self, y: Tensor, alpha: float) -> Tensor:
        """α f from the potentials."""
        norm = self.edge_norm
        if norm is None or not norm.live:
            return self.update(y, self.gains, alpha)
        assert self.gamma is not None
        if isinstance(norm, LiveNorm) and norm.place == "after":
            # the statistics are those of the flux that is needed anyway: one pass over the edges
            flux, moments = diffuse_moments(y, self.graph, self.activation, primitive=False)
            gains = self.gains.louder(norm.scale(moments, self.graph, self.gamma))
            return self.gather(flux, gains.after, alpha)
        gains = norm.gains(y, self.graph, self.activation, self.gamma)
        return self.update(y, gains.louder(self.gains.after), alpha)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class DiffusionEnergy(DiffusionMap, Energy):
    """f = id - ∇E on the coordinates the mask keeps, with

        E(Z) = ½‖Z‖² + 1/(1-p) [ Σ_{e,k} w_e ω_k/g_k σ̃(g_k v_ek) + η Σ_e w_e ‖(ĜZ)_e‖² ],   v = Ĝ(ZKᵀ + B).

    E is 1-strongly convex for every K, and L-smooth with L = 1 + (max ωg ‖K‖² + 2η) ‖√w Ĝ‖² / (1-p).
    """

    gains: Gains
    eta: float
    keep: float
    """1 - dropout rate"""
    norm: Tensor
    """(graphs,) a bound of ‖√w Ĝ‖²"""

    def __call__(self, z: Tensor) -> Tensor:
        """f(z) = z - ∇E(z)."""
        update = self.update(self.potential(z), self.gains)
        return update - self.masked(self._smooth(z)) if self.eta else update

    def value(self, z: Tensor) -> Tensor:
        """E(z) per graph."""
        _, moments = diffuse_moments(self.amplify(self.gains.before, self.potential(z)), self.edges, self.activation)
        terms = moments.primitive * self._channel_factor(self.gains.after) / self._channel_factor(self.gains.before)
        penalty = terms.sum(dim=1)
        if self.eta:
            _, linear = diffuse_moments(self.s * z, self.graph, "identity")
            penalty = penalty + self.eta * linear.square.sum(dim=1)
        inner = inner_product(self.graph)
        return inner.dot(z, z) / 2 + penalty / self.keep

    def hessian(self, z: Tensor) -> Map:
        """u ↦ u + m ⊙ [Ĝᵀ(w ω g σ'(g v) ⊙ ĜuKᵀ)K + 2η Ĝᵀw Ĝu], for u on the coordinates the mask keeps."""
        y = self.amplify(self.gains.before, self.potential(z))
        product = self._second_order(y, diffuse_jvp)
        return onecall.Hessian(self._layer, self, y, product) if onecall.covered(self) else product

    def majorizer(self, z: Tensor) -> Map:
        """The same with σ(g v)/(g v) for σ'(g v): for log cosh, the parabola that touches at ±v lies above."""
        return self._second_order(self.amplify(self.gains.before, self.potential(z)), diffuse_secant)

    def _second_order(self, y: Tensor, derivative: Callable[[Tensor, Tensor, Graph, str], Tensor]) -> Map:
        def product(u: Tensor) -> Tensor:
            t = self.amplify(self.gains.before, self.s * self.see(u))
            moved = self.amplify(self.gains.after, derivative(y, t, self.edges, self.activation))
            curved = self.collect(self.s * moved)
            if self.eta:
                curved = curved + self._smooth(u)
            return u + self.masked(curved)

        return product

    def descend(self, z0: Tensor, descent: Descent, inner: InnerProduct) -> Descended | None:
        """In compiled code on the CPU, where there is some for these options and it pays."""
        return onecall.descend(self._layer, self, z0, descent, inner) if onecall.covered(self) else None

    @functools.cached_property
    def _layer(self) -> Layer:
        return onecall.make_layer(self)

    def project(self, u: Tensor) -> Tensor:
        """The coordinates the mask keeps."""
        return u if self.mask is None else torch.where(self.mask > 0, u, 0.0)

    @functools.cached_property
    def norm_K(self) -> Tensor:
        """A bound of ‖K‖₂²."""
        return spectral_bound(self.K)

    @functools.cached_property
    def strength(self) -> Tensor:
        """(graphs,) the largest ω g over the channels."""
        product = self._channel_factor(self.gains.before) * self._channel_factor(self.gains.after)
        return product.detach().amax(dim=1).expand(self.graph.num_graphs)

    @functools.cached_property
    def smoothness(self) -> Tensor:
        """L, per graph."""
        return 1 + (self.strength * self.norm_K + 2 * self.eta) * self.norm / self.keep

    def rounding(self, z: Tensor) -> Tensor:
        """First-order error of f(z) in the arithmetic of z, in norm and per graph.

        u is the unit roundoff. Potentials are off by about u(‖Z‖‖K‖ + |C|) each, tanh by 7u, the sums and products
        after it by a few u; the scaled incidence matrix and K carry these errors into f at most with their norms.
        Measured errors are 6 to 200 times smaller, since they are random and partly cancel.
        """
        inner, edges = inner_product(self.edges), self.edges
        unit = torch.finfo(z.dtype).eps / 2
        frobenius = torch.linalg.matrix_norm(self.K.double())
        norm_K, norm_G = self.norm_K.sqrt(), self.norm.sqrt()
        degree = edges.degree
        reach = (degree[:, None] * self.s.double().square()).amax().sqrt() if len(degree) else norm_K.new_zeros(())
        size_z = inner_product(self.graph).norm(z)
        rows = torch.linalg.vector_norm(self.C, dim=1, dtype=torch.float64)
        injected = inner.collect(degree * rows.square()).sqrt()
        potentials = frobenius * norm_G * size_z / 2 + math.sqrt(2) * (injected + reach * norm_K * size_z)
        before = self._channel_factor(self.gains.before).detach().amax(dim=1)
        after = self._channel_factor(self.gains.after).detach().amax(dim=1)
        length = math.sqrt(2) * before * (injected + reach * norm_K * size_z)
        if self.activation == "tanh":
            length = torch.minimum(length, (edges.edge_mass * self.C.shape[1]).sqrt())
        longest = degree.amax().sqrt() if len(degree) else norm_K.new_zeros(())
        flux = after * norm_G * (norm_K * before * potentials + length * ((7 + longest / 2) * norm_K + frobenius / 2))
        laplacian = 4 * self.eta * self.norm * size_z
        error: Tensor = unit * (2 * size_z + (flux + laplacian) / self.keep)
        return error

    def _smooth(self, z: Tensor) -> Tensor:
        """2η Ĝᵀw ĜZ."""
        return 2 * self.eta * self.s * diffuse(self.s * z, self.graph, "identity")

    def _channel_factor(self, gain: Tensor | None) -> Tensor:
        """(graphs or 1, H or 1) float64."""
        return self.norm.new_ones(1, 1) if gain is None else gain.double()
