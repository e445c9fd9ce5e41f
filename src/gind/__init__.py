"""Graph implicit nonlinear diffusion: equilibria that are reached, certified and differentiated exactly.

Names are imported when they are first used, so that `gind --help` need not wait for PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gind.certify import ModelCertificate, certify_model, energy, proven_labels
    from gind.certify.certificate import Certificate, certificate
    from gind.certify.prox import Prox, prox
    from gind.datasets import DataError, Dataset, Split
    from gind.diffusion import (
        Composition,
        Decorrelation,
        Diffusion,
        Elimination,
        FrozenNorm,
        Laplacian,
        LaplacianStep,
        LiveNorm,
    )
    from gind.equilibrium import (
        Anderson,
        Blocks,
        Broyden,
        Contraction,
        ConvergenceError,
        ConvergenceWarning,
        Energy,
        HeavyBall,
        Implicit,
        Nesterov,
        NewtonCG,
        Phantom,
        Picard,
        Solution,
        Status,
        Stop,
        Unrolled,
        Whole,
        fixed_point,
        watch,
    )
    from gind.estimator import GINDClassifier
    from gind.graph import Graph, Identity, OutDegree, Row, Symmetric, divergence, gradient
    from gind.models import GIND, GINDConv
    from gind.train import FitOptions, FitReport, fit

__version__ = "0.3.0.dev0"

# where public names live, from the bottom up
_HOMES = ("equilibrium", "graph", "diffusion", "certify", "models", "datasets", "train", "estimator")

__all__ = [
    "GIND",
    "Anderson",
    "Blocks",
    "Broyden",
    "Certificate",
    "Composition",
    "Contraction",
    "ConvergenceError",
    "ConvergenceWarning",
    "DataError",
    "Dataset",
    "Decorrelation",
    "Diffusion",
    "Elimination",
    "Energy",
    "FitOptions",
    "FitReport",
    "FrozenNorm",
    "GINDClassifier",
    "GINDConv",
    "Graph",
    "HeavyBall",
    "Identity",
    "Implicit",
    "Laplacian",
    "LaplacianStep",
    "LiveNorm",
    "ModelCertificate",
    "Nesterov",
    "NewtonCG",
    "OutDegree",
    "Phantom",
    "Picard",
    "Prox",
    "Row",
    "Solution",
    "Split",
    "Status",
    "Stop",
    "Symmetric",
    "Unrolled",
    "Whole",
    "__version__",
    "certificate",
    "certify_model",
    "divergence",
    "energy",
    "fit",
    "fixed_point",
    "gradient",
    "proven_labels",
    "prox",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = importlib.import_module(f"gind.{home}")
            if name in module.__all__:
                globals()[name] = getattr(module, name)  # found without this function from now on
                return globals()[name]
    raise AttributeError(f"module 'gind' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
