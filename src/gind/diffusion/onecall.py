"""Whole solves of a `DiffusionEnergy`, and many steps of a `LiveMap`, in one call of compiled code, where it pays.

The maps' own methods define what is computed. Not covered, and left to the general loops: a Laplacian term,
decorrelation, statistics before σ, the identity as σ, other devices and inner products than one per graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from gind.diffusion.edge_norm import LiveNorm
from gind.diffusion.regularize import LaplacianStep
from gind.equilibrium import Status
from gind.equilibrium.descent import Descended, Descent
from gind.equilibrium.energy import Map
from gind.equilibrium.inner import Blocks, InnerProduct, Whole
from gind.equilibrium.linear import Operator
from gind.graph import Graph
from gind.kernels.onecall import Layer, Live, worthwhile

if TYPE_CHECKING:
    from gind.diffusion.map import DiffusionEnergy, DiffusionMap, LiveMap

__all__ = ["Hessian", "covered", "descend", "make_layer", "march", "marches"]


def covered(fn: DiffusionEnergy) -> bool:
    """Whether the compiled code can and should be used here and now."""
    return not fn.eta and _served(fn)


def marches(fn: LiveMap) -> bool:
    """The same for the steps of a map without an energy."""
    norm = fn.edge_norm
    normed = norm is None or not norm.live or (isinstance(norm, LiveNorm) and norm.place == "after")
    return normed and (fn.regularizer is None or isinstance(fn.regularizer, LaplacianStep)) and _served(fn)


def _served(fn: DiffusionMap) -> bool:
    tensors = (fn.K, fn.C, fn.s)
    return (
        fn.activation == "tanh"
        and not torch.is_grad_enabled()
        and worthwhile(fn.graph.num_nodes, fn.graph.num_edges, *fn.K.shape)
        and all(tensor.device.type == "cpu" and tensor.dtype == fn.C.dtype for tensor in tensors)
        and fn.C.dtype in (torch.float32, torch.float64)
        and fn.K.numel() > 0
        and not torch.is_autocast_enabled("cpu")
    )


def make_layer(fn: DiffusionEnergy | LiveMap) -> Layer:
    """The constants of the map, for the compiled code."""
    graph, shape = fn.graph, (fn.graph.num_graphs, fn.K.shape[0])
    before, after = (None if gain is None else gain.expand(shape) for gain in fn.gains)
    edges = (graph.ptr, graph.head, graph.weight_as(fn.C.dtype))
    return Layer(fn.K, fn.C, fn.s, (before, after), fn.mask, edges, graph.batch, graph.num_graphs)


def descend(layer: Layer, fn: DiffusionEnergy, z0: Tensor, descent: Descent, inner: InnerProduct) -> Descended | None:
    """See `Energy.descend`."""
    if not _fits(z0, fn.K, inner, fn.graph):
        return None
    stop = (float(descent.stop.tol), descent.stop.max_steps, descent.patience)
    end = layer.descend(z0, (descent.step, descent.momentum), stop, fn.rounding)
    return Descended(end.z, end.absolute, end.relative, end.steps, Status[end.status])


def march(layer: Layer, fn: LiveMap, z: Tensor, times: int) -> Tensor | None:
    """See `Repeatable.repeat`."""
    if z.shape != (fn.graph.num_nodes, fn.K.shape[1]) or z.dtype != fn.K.dtype:
        return None
    pull = None
    if isinstance(fn.regularizer, LaplacianStep):
        pull = fn.regularizer.eta * fn.regularizer.factor(fn.s, fn.graph)
    live = None
    if isinstance(fn.edge_norm, LiveNorm):
        assert fn.gamma is not None
        kind = "deviation" if fn.edge_norm.deviates(fn.graph) else fn.edge_norm.flavor
        live = Live(fn.gamma, fn.edge_norm.mass(fn.graph), kind, fn.graph.directed, fn.edge_norm.eps)
    return layer.march(z, pull, live, fn.alpha, times)


@final
class Hessian(Operator):
    """The Hessian at the potentials y; `product` is its definition, used where a gradient is recorded."""

    def __init__(self, layer: Layer, fn: DiffusionEnergy, y: Tensor, product: Map) -> None:
        self.layer, self.fn, self.y, self.product = layer, fn, y, product

    def __call__(self, u: Tensor) -> Tensor:
        """∇²E u."""
        if torch.is_grad_enabled() or u.shape != (len(self.y), self.fn.K.shape[1]) or u.dtype != self.y.dtype:
            return self.product(u)
        return self.layer.product(self.y, u)

    def run(
        self, rhs: Tensor, inner: InnerProduct, target: Tensor, max_steps: int
    ) -> tuple[Tensor, Tensor, int] | None:
        """Conjugate gradients."""
        if torch.is_grad_enabled() or not _fits(rhs, self.fn.K, inner, self.fn.graph):
            return None
        return self.layer.conjugate_gradients(self.y, rhs, target, max_steps)


def _fits(z: Tensor, K: Tensor, inner: InnerProduct, graph: Graph) -> bool:
    whole = isinstance(inner, Whole) and graph.batch is None
    blocks = isinstance(inner, Blocks) and inner.index is graph.batch and inner.size == graph.num_graphs
    return (whole or blocks) and z.shape == (graph.num_nodes, K.shape[1]) and z.dtype == K.dtype
