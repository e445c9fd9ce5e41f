"""Certificates of all implicit layers of a model in one forward pass."""

import contextlib
import dataclasses
import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gind.certify.certificate import Certificate, certificate
from gind.diffusion import Diffusion
from gind.equilibrium import ConvergenceWarning, Solution, watch
from gind.graph import Graph

__all__ = ["ModelCertificate", "certify_model"]


@dataclasses.dataclass(frozen=True)
class ModelCertificate:
    """What is known about the equilibria of one forward pass; of several solves, the worst."""

    residual: float
    """‖z - f(z)‖ / ‖f(z)‖"""
    bound: float
    """‖z - z*‖ is at most this; infinite where a map has no energy and is no known contraction, so no proof"""
    tolerance: float
    """what the residuals were asked to reach"""
    reached: bool
    """whether every residual did"""
    layers: tuple[Certificate, ...]
    """of the layers that have an energy, measured in float64"""

    @property
    def proven(self) -> bool:
        """Whether the distance to the exact equilibrium is bounded."""
        return math.isfinite(self.bound)


def certify_model(model: nn.Module, forward: Callable[[], Any]) -> ModelCertificate | None:
    """Run `forward`, a call of the model, in evaluation mode and certify what its implicit layers returned.

    None if nothing in the model is solved. A layer with an energy is certified in float64, however it is called; any
    other equilibrium shows residual and bound as its solver measured them, the bound infinite if nothing is known about
    the map.
    """
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), watch() as solutions, _answers(model, solutions) as answers, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            forward()
    finally:
        model.train(training)
    if not solutions:
        return None
    certified = {id(answer.solution) for answer in answers}
    layers = tuple(certificate(*answer) for answer in answers)
    others = [solution for solution in solutions if id(solution) not in certified]
    return ModelCertificate(
        residual=_worst([c.residual for c in layers] + [s.residual for s in others]),
        bound=_worst([c.distance for c in layers] + [s.bound for s in others]),
        tolerance=max([c.tol for c in layers] + [s.tol for s in others]),
        reached=all(c.holds for c in layers) and all(s.converged for s in others),
        layers=layers,
    )


class _Answer(NamedTuple):
    layer: Diffusion
    b: Tensor
    graph: Graph
    solution: Solution


@contextlib.contextmanager
def _answers(model: nn.Module, solutions: list[Solution]) -> Iterator[list[_Answer]]:
    """What layers with an energy were asked and what they answered, the last of `solutions` when they return."""
    answers: list[_Answer] = []

    def note(layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        if isinstance(layer, Diffusion) and layer.has_energy:
            asked = inspect.signature(layer.forward).bind(*inputs, **named).arguments
            answers.append(_Answer(layer, asked["b"], asked["graph"], solutions[-1]))

    layers = [layer for layer in model.modules() if isinstance(layer, Diffusion)]
    hooks = [layer.register_forward_hook(note, with_kwargs=True) for layer in layers]
    try:
        yield answers
    finally:
        for hook in hooks:
            hook.remove()


def _worst(values: list[Tensor]) -> float:
    numbers = [value.double().flatten() for value in values if value.numel()]
    return float(torch.cat(numbers).max()) if numbers else 0.0  # NaN, wherever it stands
