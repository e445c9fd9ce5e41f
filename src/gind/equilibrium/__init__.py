"""Fixed points of any map; knows nothing of graphs."""

from gind.equilibrium.adjoints import Adjoint, Implicit, Phantom, Unrolled
from gind.equilibrium.energy import Contraction, Energy
from gind.equilibrium.inner import Blocks, InnerProduct, Whole
from gind.equilibrium.solution import (
    ConvergenceError,
    ConvergenceWarning,
    GradientReport,
    Solution,
    Status,
    Stop,
)
from gind.equilibrium.solve import fixed_point
from gind.equilibrium.solvers import Anderson, Broyden, Nesterov, NewtonCG, Picard, Solver

__all__ = [
    "Adjoint",
    "Anderson",
    "Blocks",
    "Broyden",
    "Contraction",
    "ConvergenceError",
    "ConvergenceWarning",
    "Energy",
    "GradientReport",
    "Implicit",
    "InnerProduct",
    "Nesterov",
    "NewtonCG",
    "Phantom",
    "Picard",
    "Solution",
    "Solver",
    "Status",
    "Stop",
    "Unrolled",
    "Whole",
    "fixed_point",
]
