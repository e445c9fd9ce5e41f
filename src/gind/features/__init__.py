"""The input layer for features that are mostly zeros: X Wᵀ + c with dropout, and the choice of a layout for X."""

from gind.features.csr import SPARSE_BELOW, compact, csr
from gind.features.drop import Dropout, dropout
from gind.features.layout import CROSSOVER, check, choose_layout, density
from gind.features.linear import encode, make_linear
from gind.features.project import project

__all__ = [
    "CROSSOVER",
    "SPARSE_BELOW",
    "Dropout",
    "check",
    "choose_layout",
    "compact",
    "csr",
    "density",
    "dropout",
    "encode",
    "make_linear",
    "project",
]
