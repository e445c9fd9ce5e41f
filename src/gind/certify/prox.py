"""The paper's own view (theorem 1): for ‖K‖‖Ĝ‖ ≤ 1 the averaged map is a proximal operator."""

from typing import NamedTuple

from torch import Tensor

from gind.certify.objective import bound_energy
from gind.diffusion import Diffusion
from gind.diffusion.map import DiffusionEnergy, inner_product
from gind.graph import Graph

__all__ = ["Prox", "prox"]


class Prox(NamedTuple):
    """u = Prox_φ(z), and φ(u) per graph (float64)."""

    value: Tensor
    phi: Tensor


def prox(layer: Diffusion, z: Tensor, b: Tensor, graph: Graph) -> Prox:
    """Prox_φ(z) = (z + f(z))/2 with φ = ψ* - ½‖·‖², ψ(z) = ½‖z‖² - ½E(z), as in the proof of theorem 1.

    ∇ψ(z) = (z + f(z))/2 = u, so ψ*(u) = ⟨u, z⟩ - ψ(z): the value of φ at u comes without a further minimization.
    ψ is convex only for ‖K‖²‖Ĝ‖² max ωg ≤ 1, that is smoothness L ≤ 2; beyond it there is no such φ, and an error.
    """
    fn = bound_energy(layer, b, graph)
    _require_contraction(fn)
    u = (z + fn(z)) / 2
    inner = inner_product(graph)
    psi = inner.dot(z, z) / 2 - fn.value(z) / 2
    return Prox(u, inner.dot(u, z) - psi - inner.dot(u, u) / 2)


def _require_contraction(fn: DiffusionEnergy) -> None:
    largest = float(fn.smoothness.max())
    if largest > 2 * (1 + 1e-2):  # the bound of ‖K‖ may be one percent above it
        raise ValueError(
            f"The paper's proximal identity needs ‖K‖²‖Ĝ‖² ≤ 1, here it is {largest - 1:.3g}. "
            "The energy itself is convex for every K: use `gind.energy`."
        )
