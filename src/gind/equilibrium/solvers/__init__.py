"""Solvers: a step each."""

from gind.equilibrium.solvers.anderson import Anderson
from gind.equilibrium.solvers.base import Iterate, Solver
from gind.equilibrium.solvers.broyden import Broyden
from gind.equilibrium.solvers.heavy_ball import HeavyBall
from gind.equilibrium.solvers.nesterov import Nesterov
from gind.equilibrium.solvers.newton_cg import NewtonCG
from gind.equilibrium.solvers.picard import Picard

__all__ = ["Anderson", "Broyden", "HeavyBall", "Iterate", "Nesterov", "NewtonCG", "Picard", "Solver"]
