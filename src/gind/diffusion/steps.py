"""Many steps of a `LiveMap` in one call of compiled code, with their gradient; of several in turn without.

The map's own methods define what is computed. Not covered, and done one by one: statistics before σ, decorrelation, and
what `onecall.served` leaves out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gind.diffusion import onecall
from gind.diffusion.edge_norm import LiveNorm
from gind.diffusion.regularize import LaplacianStep
from gind.kernels.onecall import is_small
from gind.kernels.steps import Live, Steps, alternate

if TYPE_CHECKING:
    from gind.diffusion.map import LiveMap

__all__ = ["covered", "make_steps", "repeat", "repeat_all"]


def covered(fn: LiveMap) -> bool:
    """Whether the compiled code can and should be used here and now."""
    norm = fn.edge_norm
    normed = norm is None or not norm.live or (isinstance(norm, LiveNorm) and norm.place == "after")
    stepped = fn.regularizer is None or isinstance(fn.regularizer, LaplacianStep)
    # with gradient these must be constants, and there must be no gain before σ
    constants = [tensor for tensor in (fn.gains.after, fn.mask, fn.s) if tensor is not None]
    plain = fn.gains.before is None and not any(tensor.requires_grad for tensor in constants)
    return normed and stepped and (plain or not torch.is_grad_enabled()) and onecall.served(fn)


def make_steps(fn: LiveMap) -> Steps:
    """The constants of the map, for the compiled code."""
    pull = None
    if isinstance(fn.regularizer, LaplacianStep):
        pull = fn.regularizer.eta * fn.regularizer.factor(fn.s, fn.graph)
    live = None
    if isinstance(fn.edge_norm, LiveNorm):
        assert fn.gamma is not None
        kind = "deviation" if fn.edge_norm.deviates(fn.graph) else fn.edge_norm.flavor
        live = Live(fn.gamma, fn.edge_norm.mass(fn.graph), kind, fn.graph.directed, fn.edge_norm.eps)
    return Steps(onecall.make_layer(fn), pull, live, fn.alpha)


def repeat(steps: Steps, fn: LiveMap, z: Tensor, times: int) -> Tensor | None:
    """See `Repeatable.repeat`."""
    if z.shape != (fn.graph.num_nodes, fn.K.shape[1]) or z.dtype != fn.K.dtype:
        return None
    if not torch.is_grad_enabled():
        return steps.run(z, times)[0]
    return _repeat(z, fn.K, fn.C, fn.gamma, steps, fn, times)


def repeat_all(maps: Sequence[LiveMap], z: Tensor, times: int) -> Tensor | None:
    """So many times all maps in a row; None if that is never, with gradient, or where compiled code is not to be used.

    Large problems do as well operator by operator (decision 0011).
    """
    graph, K = maps[0].graph, maps[0].K
    fits = z.shape == (graph.num_nodes, K.shape[1]) and z.dtype == K.dtype
    small = is_small(graph.num_nodes, graph.num_edges, *K.shape)
    if not times or torch.is_grad_enabled() or not fits or not small or not all(map(covered, maps)):
        return None
    return alternate([make_steps(one) for one in maps], z, times)


class _Repeat(torch.autograd.Function):
    """So many steps, recorded."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, K: Tensor, C: Tensor, gamma: Tensor | None, steps: Steps, fn: LiveMap, times: int
    ) -> Tensor:
        end, ctx.record = steps.run(z, times, record=True)
        ctx.save_for_backward(z, K, C, gamma)
        ctx.steps, ctx.fn, ctx.times = steps, fn, times
        return end

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, K, C, gamma = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of the gradient: step by step
            slopes = _again(ctx.fn, [z, K, C, gamma], ctx.times, grad)
        else:
            with torch.autocast("cpu", enabled=False):  # the products there are of one precision
                slopes = list(ctx.steps.back(ctx.record, grad))
        return (*slopes, None, None, None)


_repeat: Callable[..., Tensor] = _Repeat.apply  # torch gives apply no types


def _again(fn: LiveMap, given: list[Tensor | None], times: int, grad: Tensor) -> list[Tensor | None]:
    """The gradient as a function that has one: through the steps one by one."""
    # aliases: C depends on K, and only what the steps themselves make of K counts here
    z, K, C, gamma = (None if tensor is None else tensor.view_as(tensor) for tensor in given)
    assert z is not None
    assert K is not None
    assert C is not None
    step, end = dataclasses.replace(fn, K=K, C=C, gamma=gamma), z
    for _ in range(times):
        end = step(end)
    wanted = [tensor for tensor in (z, K, C, gamma) if tensor is not None and tensor.requires_grad]
    found = iter(torch.autograd.grad(end, wanted, grad, create_graph=True, allow_unused=True))
    return [next(found) if t is not None and t.requires_grad else None for t in (z, K, C, gamma)]
