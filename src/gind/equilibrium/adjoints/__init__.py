"""Adjoints: how gradients flow back."""

from gind.equilibrium.adjoints.base import Adjoint
from gind.equilibrium.adjoints.implicit import Implicit
from gind.equilibrium.adjoints.phantom import Phantom
from gind.equilibrium.adjoints.unrolled import Unrolled

__all__ = ["Adjoint", "Implicit", "Phantom", "Unrolled"]
