"""The convex energy whose minimizer is the equilibrium."""

from torch import Tensor

from gind.diffusion import Diffusion
from gind.diffusion.map import DiffusionEnergy
from gind.graph import Graph

__all__ = ["bound_energy", "energy"]


def bound_energy(layer: Diffusion, b: Tensor, graph: Graph, mask: Tensor | None = None) -> DiffusionEnergy:
    """The energy of a layer on this input, without dropout unless a mask is given; an error if it has none."""
    training = layer.training
    layer.train(mask is not None)
    try:
        fn = layer.bind(b, graph, mask)
    finally:
        layer.train(training)
    if not isinstance(fn, DiffusionEnergy):
        raise ValueError(
            f"A layer with {layer.edge_norm or layer.regularizer} has no energy: its map is no gradient. "
            "Use FrozenNorm() and Laplacian(eta), which keep it."
        )
    return fn


def energy(layer: Diffusion, z: Tensor, b: Tensor, graph: Graph) -> Tensor:
    """(graphs,) float64: E(Z) = ½‖Z‖² + Σ_{e,k} w_e ω_k/g_k σ̃(g_k v_ek) + η‖√w ĜZ‖², v = Ĝ(ZKᵀ + B), per graph.

    z is the layer's variable, `Solution.value` (for the row variant Z̄). Dropout is off. Differentiable.
    """
    return bound_energy(layer, b, graph).value(z)
