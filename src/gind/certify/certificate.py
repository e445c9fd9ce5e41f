"""What is proven about one answer of one layer."""

import copy
import dataclasses

import torch
from torch import Tensor

from gind.certify.objective import bound_energy
from gind.diffusion import Diffusion
from gind.diffusion.map import inner_product
from gind.equilibrium import Solution
from gind.graph import Graph

__all__ = ["Certificate", "certificate"]


@dataclasses.dataclass(frozen=True, eq=False)
class Certificate:
    """Everything is measured in float64 at the given z, per graph (graphs,)."""

    smoothness: Tensor
    """L: the energy's curvature lies between 1 and this (an upper bound)"""
    norm_K: float
    """‖K‖₂ (an upper bound, at most a percent above)"""
    norm_G: Tensor
    """‖√w Ĝ‖₂ (an upper bound)"""
    residual: Tensor
    """‖z - f(z)‖ / ‖f(z)‖"""
    distance: Tensor
    """‖z - z*‖ is at most this: ‖z - f(z)‖ plus the rounding of its float64 evaluation"""
    energy: Tensor
    """E(z)"""
    energy_gap: Tensor
    """E(z) - min E is at most this: half the square of `distance`"""
    gradient_residual: Tensor | None = None
    """‖∇²E u - g‖ / ‖g‖ of the backward solve; None before `backward`"""
    tol: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the residual of every graph is within the layer's tolerance."""
        return bool((self.residual <= self.tol).all())

    def __str__(self) -> str:
        def worst(values: Tensor, form: str = ".3e") -> str:
            return format(float(values.max()), form) if values.numel() else "-"

        many = f" (worst of {len(self.residual)} graphs)" if len(self.residual) > 1 else ""
        rows = [
            ("smoothness L", worst(self.smoothness), f"‖K‖ ≤ {self.norm_K:.3f}, ‖Ĝ‖ ≤ {worst(self.norm_G, '.3f')}"),
            (
                "residual",
                worst(self.residual),
                f"tolerance {self.tol:.0e}: {'reached' if self.holds else 'NOT reached'}",
            ),
            ("distance ‖Z - Z*‖ ≤", worst(self.distance), "to the exact equilibrium"),
            ("energy E(Z)", worst(self.energy), f"at most {worst(self.energy_gap)} above its minimum"),
        ]
        if self.gradient_residual is not None:
            rows.append(("gradient residual", worst(self.gradient_residual), "of the implicit gradient's linear solve"))
        width = max(len(name) for name, _, _ in rows)
        lines = [f"  {name:<{width}}  {value:>10}   {remark}" for name, value, remark in rows]
        return "\n".join([f"Equilibrium certificate{many}", *lines])


def certificate(layer: Diffusion, b: Tensor, graph: Graph, solution: Solution | Tensor) -> Certificate:
    """Certify an answer z of `layer` for input b: a `Solution` of its forward pass, or any z.

    f and E are evaluated once in float64, so that the bounds hold also where z was computed in float32. The layer is
    taken without dropout: certify what was computed in evaluation mode.
    """
    if not isinstance(layer, Diffusion):
        raise TypeError(
            f"`layer` must be a Diffusion, got {type(layer).__name__}. For a GINDConv pass "
            "`conv.diffusion` and its input, `conv.lin(x)`."
        )
    z = solution.value if isinstance(solution, Solution) else solution
    exact = copy.deepcopy(layer).double()
    with torch.no_grad():
        z = z.detach().double()
        fn = bound_energy(exact, b.detach().double(), graph)
        fz, inner = fn(z), inner_product(graph)
        residual = inner.norm(z - fz)
        distance = residual + fn.rounding(z)
        return Certificate(
            smoothness=fn.smoothness,
            norm_K=float(fn.norm_K.sqrt()),
            norm_G=fn.norm.sqrt(),
            residual=torch.where(residual == 0, residual, residual / inner.norm(fz)),
            distance=distance,
            energy=fn.value(z),
            energy_gap=distance.square() / 2,
            gradient_residual=solution.gradient.residual if isinstance(solution, Solution) else None,
            tol=layer.stop.tol,
        )
