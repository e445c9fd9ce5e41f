"""What one implicit layer costs: an iteration, a solve, its gradient; ours and with edge tensors stored."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gind.bench.case import Case
from gind.bench.interleave import Contender
from gind.bench.reference import reference_kernels
from gind.diffusion import Diffusion
from gind.equilibrium import Stop
from gind.graph import Graph, Row

__all__ = ["OURS", "STORED", "backward", "iteration", "make_iteration", "make_layer", "solve"]

OURS, STORED = "gind", "edge-storing"
TOLERANCE = 1e-4
_NORM = 3.0  # ‖K‖: about that of a new layer


def iteration(case: Case) -> list[Contender]:
    """f(z), without gradient."""
    return _pair(make_iteration(case.graph, case.channels))


def solve(case: Case) -> list[Contender]:
    """The equilibrium to 1e-4, without gradient."""
    layer, b = make_layer(case.graph, case.channels)

    def run(_: Any) -> Sequence[Tensor]:
        with torch.no_grad():
            return (layer(b, case.graph),)

    return _pair(run)


def backward(case: Case) -> list[Contender]:
    """The gradient of ‖out‖² with respect to b and K, after a solve that is not timed."""
    layer, b = make_layer(case.graph, case.channels)
    b.requires_grad_()

    def setup() -> Tensor:
        loss: Tensor = layer(b, case.graph).square().sum()
        return loss

    def run(loss: Tensor) -> Sequence[Tensor]:
        return torch.autograd.grad(loss, (b, layer.K))

    return _pair(run, setup)


def make_layer(graph: Graph, channels: int) -> tuple[Diffusion, Tensor]:
    """A layer with ‖K‖ = 3, and its input."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        layer = Diffusion(channels, scaling=Row(), stop=Stop(TOLERANCE, 200))
        layer.K.mul_(_NORM / torch.linalg.matrix_norm(layer.K, 2))
        return layer, torch.randn(graph.num_nodes, channels)


def make_iteration(graph: Graph, channels: int) -> Callable[[Any], Sequence[Tensor]]:
    """The map of a layer at a random point."""
    layer, b = make_layer(graph, channels)
    with torch.no_grad():
        fn, z = layer.bind(b, graph), b.flip(0)

    def run(_: Any) -> Sequence[Tensor]:
        with torch.no_grad():
            return (fn(z),)

    return run


def _pair(run: Callable[[Any], Sequence[Tensor]], setup: Callable[[], Any] | None = None) -> list[Contender]:
    return [Contender(OURS, run, setup), Contender(STORED, run, setup, reference_kernels, same=True)]
