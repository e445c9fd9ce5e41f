"""Where graph meets equilibrium: the implicit nonlinear diffusion layer."""

from gind.diffusion.compose import Composition
from gind.diffusion.edge_norm import EdgeNorm, FrozenNorm, Gains, LiveNorm
from gind.diffusion.eliminate import Elimination
from gind.diffusion.layer import Diffusion
from gind.diffusion.regularize import Decorrelation, Laplacian, LaplacianStep, Regularizer, StepRegularizer

__all__ = [
    "Composition",
    "Decorrelation",
    "Diffusion",
    "EdgeNorm",
    "Elimination",
    "FrozenNorm",
    "Gains",
    "Laplacian",
    "LaplacianStep",
    "LiveNorm",
    "Regularizer",
    "StepRegularizer",
]
