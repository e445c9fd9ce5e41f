"""Where graph meets equilibrium: the implicit nonlinear diffusion layer."""

from gind.diffusion.compose import Composition
from gind.diffusion.edge_norm import EdgeNorm, FrozenNorm, LiveNorm
from gind.diffusion.layer import Diffusion
from gind.diffusion.regularize import Decorrelation, Laplacian, LaplacianStep, Regularizer

__all__ = [
    "Composition",
    "Decorrelation",
    "Diffusion",
    "EdgeNorm",
    "FrozenNorm",
    "Laplacian",
    "LaplacianStep",
    "LiveNorm",
    "Regularizer",
]
