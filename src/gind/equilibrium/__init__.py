"""Fixed points of any map; knows nothing of graphs."""

from gind.equilibrium.adjoints import Adjoint, Implicit, Phantom, Unrolled
from gind.equilibrium.energy import Contraction, Energy, Problem
from gind.equilibrium.inner import Blocks, InnerProduct, Whole
from gind.equilibrium.precondition import Preconditioner
from gind.equilibrium.solution import (
    ConvergenceError,
    ConvergenceWarning,
    GradientReport,
    Solution,
    Status,
    Stop,
)
from gind.equilibrium.solve import fixed_point
from gind.equilibrium.solvers import Anderson, Broyden, HeavyBall, Nesterov, NewtonCG, Picard, Solver
from gind.equilibrium.solvers.base import Iterate
from gind.equilibrium.watch import unmeasured, watch

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
    "HeavyBall",
    "Implicit",
    "InnerProduct",
    "Iterate",
    "Nesterov",
    "NewtonCG",
    "Phantom",
    "Picard",
    "Preconditioner",
    "Problem",
    "Solution",
    "Solver",
    "Status",
    "Stop",
    "Unrolled",
    "Whole",
    "fixed_point",
    "unmeasured",
    "watch",
]
