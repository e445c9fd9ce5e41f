"""Whole solves of a `DiffusionEnergy` in one call of compiled code, where there is some and it pays.

The energy's own methods define what is computed. Not covered, and left to the general loops: a Laplacian term, other
devices and inner products than one per graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from gind.equilibrium import Status
from gind.equilibrium.descent import Descended, Descent
from gind.equilibrium.energy import Map
from gind.equilibrium.inner import Blocks, InnerProduct, Whole
from gind.equilibrium.linear import Operator
from gind.graph import Graph
from gind.kernels.onecall import Layer, worthwhile

if TYPE_CHECKING:
    from gind.diffusion.map import DiffusionEnergy, DiffusionMap, LiveMap

__all__ = ["Hessian", "covered", "descend", "make_layer", "served"]


def covered(fn: DiffusionEnergy) -> bool:
    """Whether the compiled code can and should be used here and now."""
    return not fn.eta and not torch.is_grad_enabled() and served(fn)


def served(fn: DiffusionMap) -> bool:
    """What all compiled code asks of a map."""
    tensors = (fn.K, fn.C, fn.s)
    return (
        worthwhile(fn.graph.num_nodes, fn.graph.num_edges, *fn.K.shape)
        and all(tensor.device.type == "cpu" and tensor.dtype == fn.C.dtype for tensor in tensors)
        and fn.C.dtype in (torch.float32, torch.float64)
        and fn.K.numel() > 0
        and not torch.is_autocast_enabled("cpu")
    )


def make_layer(fn: DiffusionEnergy | LiveMap) -> Layer:
    """The constants of the map, for the compiled code."""
    graph, shape = fn.graph, (fn.graph.num_graphs, fn.C.shape[1])
    before, after = (None if gain is None else gain.expand(shape) for gain in fn.gains)
    edges = (fn.edges.ptr, fn.edges.head, fn.edges.weight_as(fn.C.dtype))
    return Layer(fn.K, fn.C, fn.s, (before, after), fn.mask, edges, graph.batch, graph.num_graphs, fn.activation)


def descend(layer: Layer, fn: DiffusionEnergy, z0: Tensor, descent: Descent, inner: InnerProduct) -> Descended | None:
    """See `Energy.descend`."""
    if not _fits(z0, fn.K, inner, fn.graph):
        return None
    stop = (float(descent.stop.tol), descent.stop.aim(z0.dtype), descent.stop.max_steps, descent.patience)
    rates = descent.rates
    end = layer.descend(z0, (rates.step, rates.momentum), rates.heavy, stop, fn.rounding)
    return Descended(end.z, end.absolute, end.relative, end.steps, Status[end.status])


@final
class Hessian(Operator):
    """The Hessian at the potentials y; `product` is its definition, used where a gradient is recorded."""

    def __init__(self, layer: Layer, fn: DiffusionEnergy, y: Tensor, product: Map) -> None:
        self.layer, self.fn, self.y, self.product = layer, fn, y, product

    def __call__(self, u: Tensor) -> Tensor:
        """∇²E u."""
        shape = (self.fn.graph.num_nodes, self.fn.K.shape[1])
        if torch.is_grad_enabled() or u.shape != shape or u.dtype != self.y.dtype:
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
