"""Which solver applies to which problem, and one call for all of them."""

from typing import Any

import pytest
import torch
from cases import SOLVERS
from problems import CONTRACTIONS, ENERGIES, PLAIN, Case, Maker
from torch import Tensor

from gind.equilibrium import (
    Adjoint,
    Solution,
    Solver,
    Stop,
    fixed_point,
)

DTYPES = [torch.float32, torch.float64]
TOL = {torch.float32: 1e-5, torch.float64: 1e-10}


def name(thing: Any) -> str:
    """The id of a parameter: the name of a maker or dtype, the class of a solver with what is not default in it."""
    if isinstance(thing, torch.dtype):
        return str(thing).removeprefix("torch.")
    if isinstance(thing, Solver) and thing == type(thing)():
        return type(thing).__name__
    return getattr(thing, "__name__", repr(thing))


def pairs(makers: list[Maker]) -> list[Any]:
    """Every solver with every problem it applies to."""
    return [
        pytest.param(solver, maker, id=f"{type(solver).__name__}-{name(maker)}")
        for solver in SOLVERS
        for maker in makers
        if maker in ENERGIES or not solver.needs_energy
    ]


CERTIFIED = pairs([*ENERGIES, *CONTRACTIONS])
ALL = pairs([*ENERGIES, *CONTRACTIONS, *PLAIN])


def run(
    case: Case,
    solver: Solver,
    stop: Stop,
    z0: Tensor | None = None,
    adjoint: Adjoint | None = None,
) -> Solution:
    """Solve in silence."""
    start = case.z0 if z0 is None else z0
    return fixed_point(case.fn, start, solver=solver, stop=stop, adjoint=adjoint, inner=case.inner, throw="ignore")
