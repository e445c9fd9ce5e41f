"""Gradients: exact ones against finite differences and closed forms, the others against the exact ones."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from cases import SOLVERS
from problems import SQUARE, EnergyBatch, Maker, Phi, Ridge, batch, log_cosh, mirror, mirrored, quadratic, random
from solver_cases import DTYPES, name
from torch import Tensor
from torch.testing import assert_close

from gind.equilibrium import (
    Adjoint,
    Anderson,
    Contraction,
    Energy,
    Implicit,
    NewtonCG,
    Phantom,
    Picard,
    Solver,
    Stop,
    Unrolled,
    fixed_point,
)
from gind.equilibrium.energy import Map

F64 = torch.float64
TIGHT = Implicit(Stop(1e-12, 500))
ROTATION = torch.linalg.qr(random(4, 4)).Q
# none is symmetric; ‖·‖ < 1, ‖·‖ > 1 with small eigenvalues, and all eigenvalues outside the unit disk
MATRICES = {
    "contraction": random(4, 4, norm=0.9),
    "skewed": torch.tensor([[0.0, 2.4], [-0.15, 0.0]], dtype=F64),
    "repelling": -1.5 * ROTATION,
}


def leaf(*shape: int, seed: int, norm: float | None = None) -> Tensor:
    return random(*shape, seed=seed, norm=norm).requires_grad_()


@pytest.mark.parametrize("phi", [SQUARE, Ridge.phi], ids=["quadratic", "log_cosh"])
@pytest.mark.parametrize("subspace", [torch.positive, mirror], ids=["everywhere", "subspace"])
def test_the_gradient_of_an_energy_is_exact(phi: Phi, subspace: Map) -> None:
    def solve(M: Tensor, c: Tensor) -> Tensor:
        energy, z0 = Ridge(M, c, phi, subspace), torch.zeros(3, 1, dtype=F64)
        return fixed_point(energy, z0, solver=NewtonCG(), stop=Stop(1e-12, 60), adjoint=TIGHT, throw="raise").value

    assert torch.autograd.gradcheck(solve, (leaf(4, 3, seed=0, norm=3.0), leaf(4, 1, seed=1)))


@pytest.mark.parametrize("wrap", [lambda fn: fn, lambda fn: Contraction(fn, 0.9)], ids=["plain", "Contraction"])
def test_the_gradient_of_any_other_map_is_exact(wrap: Callable[[Map], Map]) -> None:
    def solve(A: Tensor, W: Tensor, b: Tensor) -> Tensor:
        fn, z0 = wrap(lambda z: torch.tanh(A @ z @ W + b)), torch.zeros(5, 3, dtype=F64)
        return fixed_point(fn, z0, solver=Picard(), stop=Stop(1e-12, 500), adjoint=TIGHT, throw="raise").value

    inputs = (leaf(5, 5, seed=0, norm=0.9), leaf(3, 3, seed=1, norm=0.9), leaf(5, 3, seed=2))
    assert torch.autograd.gradcheck(solve, inputs, fast_mode=True)


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_the_gradient_of_an_affine_map_solves_the_transposed_system(matrix: Tensor) -> None:
    n = len(matrix)
    A, c, g = matrix.clone().requires_grad_(), leaf(n, 2, seed=1), random(n, 2, seed=2)
    solution = fixed_point(lambda z: A @ z + c, torch.zeros(n, 2, dtype=F64), stop=Stop(1e-10, 200), throw="raise")
    by_A, by_c = torch.autograd.grad(solution.value, (A, c), g)
    u = torch.linalg.solve(torch.eye(n, dtype=F64) - matrix.mT, g)
    assert_close(by_c, u, rtol=1e-5, atol=1e-6)
    assert_close(by_A, u @ solution.value.detach().mT, rtol=1e-5, atol=1e-6)


def test_a_map_that_does_not_look_at_z_has_a_gradient_too() -> None:
    theta = leaf(3, seed=0)
    solution = fixed_point(lambda z: 2 * theta, torch.zeros(3, dtype=F64))
    (gradient,) = torch.autograd.grad(solution.value.sum(), theta)
    assert_close(gradient, torch.full((3,), 2.0, dtype=F64))


@pytest.mark.parametrize("slope", [0.3, 0.5, 0.9, -0.7])
def test_a_gradient_in_few_dimensions(slope: float) -> None:
    # the adjoint solve keeps ten differences of vectors that have one dimension
    theta = torch.tensor([0.1], dtype=F64, requires_grad=True)
    solution = fixed_point(
        lambda z: torch.tanh(slope * z + theta),
        torch.zeros(1, dtype=F64),
        solver=Picard(),
        stop=Stop(1e-14, 2000),
        adjoint=Implicit(Stop(1e-14, 50)),
    )
    (gradient,) = torch.autograd.grad(solution.value.sum(), theta)
    derivative = 1 - solution.value.detach() ** 2
    assert_close(gradient, derivative / (1 - slope * derivative))


def gradient_of(maker: Maker, solver: Solver, adjoint: Adjoint, dtype: torch.dtype, stop: Stop) -> Tensor:
    """Of a fixed linear function of the solution, in a factor of all parameters of the energy."""
    case, factor = maker(dtype), torch.ones((), dtype=dtype, requires_grad=True)
    fn: Energy | None = None
    if isinstance(case.fn, Ridge):
        fn = dataclasses.replace(case.fn, M=factor * case.fn.M, c=factor * case.fn.c)
    elif isinstance(case.fn, EnergyBatch):
        scaled = [dataclasses.replace(part, M=factor * part.M, c=factor * part.c) for part in case.fn.parts]
        fn = EnergyBatch(scaled, case.fn.index)
    assert fn is not None
    solution = fixed_point(fn, case.z0, solver=solver, stop=stop, adjoint=adjoint, inner=case.inner, throw="ignore")
    weight = random(*case.z0.shape, seed=8).to(dtype)
    (gradient,) = torch.autograd.grad((weight * solution.value).sum(), factor)
    return gradient


@pytest.mark.parametrize("maker", [quadratic, log_cosh, mirrored, batch], ids=name)
def test_phantom_tends_to_the_exact_gradient(maker: Maker) -> None:
    exact = gradient_of(maker, Anderson(), TIGHT, F64, Stop(1e-12, 500))
    errors = [
        float((gradient_of(maker, Anderson(), Phantom(steps), F64, Stop(1e-12, 500)) - exact).abs())
        for steps in (1, 10, 40, 160)
    ]
    assert errors[0] > 1e-3
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 1e-4 * errors[0]


def test_phantom_by_hand() -> None:
    # z ↦ az + 1, λ = 0.5 from z* = 1/(1 - a): dz_k/da = Σ_{i<k} (1 - λ + λa)^i λ z*
    a = torch.tensor(0.6, dtype=F64, requires_grad=True)
    z0 = torch.full((1,), 2.5, dtype=F64)
    solution = fixed_point(lambda z: a * z + 1, z0, adjoint=Phantom(3, damping=0.5))
    (gradient,) = torch.autograd.grad(solution.value.sum(), a)
    assert_close(float(gradient), sum(0.8**i * 0.5 * 2.5 for i in range(3)))
    assert solution.steps == 3


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize("solver", SOLVERS, ids=name)
@pytest.mark.parametrize("maker", [log_cosh, batch], ids=name)
def test_unrolled_tends_to_the_exact_gradient(solver: Solver, maker: Maker, dtype: torch.dtype) -> None:
    stop = Stop(1e-8 if dtype == F64 else 1e-5, 500)
    exact = gradient_of(maker, solver, Implicit(), dtype, stop)
    unrolled = gradient_of(maker, solver, Unrolled(), dtype, stop)
    assert bool(unrolled.isfinite())
    assert_close(unrolled, exact, rtol=1e-2 if dtype == torch.float32 else 1e-5, atol=0)


# the line search of NewtonCG chooses its step without gradient
@pytest.mark.parametrize("solver", [s for s in SOLVERS if not isinstance(s, NewtonCG)], ids=name)
def test_unrolled_is_the_gradient_of_what_ran(solver: Solver) -> None:
    def two_steps(c: Tensor) -> Tensor:
        energy, z0 = Ridge(random(5, 3, norm=2.0), c), torch.zeros(3, 1, dtype=F64)
        return fixed_point(energy, z0, solver=solver, stop=Stop(0.0, 2), adjoint=Unrolled(), throw="ignore").value

    assert torch.autograd.gradcheck(two_steps, (leaf(5, 1, seed=3),))
