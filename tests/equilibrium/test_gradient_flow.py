"""Where gradients go and where not, what the report of the backward solve says, and what stays in memory."""

import gc
import weakref

import pytest
import torch
from problems import Ridge, log_cosh, quadratic, random
from solver_cases import DTYPES, name
from torch import Tensor, nn
from torch.testing import assert_close

from gind.equilibrium import (
    Adjoint,
    Anderson,
    Blocks,
    ConvergenceWarning,
    Implicit,
    NewtonCG,
    Phantom,
    Picard,
    Status,
    Stop,
    Unrolled,
    fixed_point,
)
from gind.equilibrium.energy import Map

F64 = torch.float64
ADJOINTS: list[Adjoint] = [Implicit(), Phantom(3), Unrolled()]


class Plain(nn.Module):
    """z ↦ tanh(wz + 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.1, 0.5, 0.9], dtype=F64))

    def forward(self, z: Tensor) -> Tensor:
        return torch.tanh(self.w * z + 1)


def energy() -> Ridge:
    return Ridge(random(4, 3, norm=2.0).requires_grad_(), random(4, seed=1).requires_grad_())


def start() -> Tensor:
    return torch.zeros(3, dtype=F64)


@pytest.mark.parametrize("make", [Plain, energy], ids=["plain", "energy"])
def test_the_report_is_filled_by_backward(make: type[Plain]) -> None:
    solution = fixed_point(make(), start())
    report = solution.gradient
    assert (report.residual, report.steps, report.status) == (None, 0, None)
    torch.autograd.backward(solution.value.sum())
    assert report.residual is not None
    assert report.residual.shape == (1,)
    assert float(report.residual) <= Implicit().stop.tol
    assert report.steps > 0
    assert report.status is Status.CONVERGED


@pytest.mark.parametrize("make", [Plain, energy], ids=["plain", "energy"])
def test_a_backward_solve_that_falls_short_says_so(make: type[Plain]) -> None:
    solution = fixed_point(make(), start(), adjoint=Implicit(Stop(1e-12, 1)))
    with pytest.warns(ConvergenceWarning, match=r"gradient.* in 1 steps.*Implicit\(Stop"):
        torch.autograd.backward(solution.value.square().sum())
    assert solution.gradient.status is Status.MAX_STEPS
    assert solution.gradient.residual is not None
    assert float(solution.gradient.residual) > 1e-12


@pytest.mark.filterwarnings("ignore::gind.equilibrium.ConvergenceWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize("smoothness", [20.0, 1e4])
def test_the_reported_residual_of_an_energy_is_the_true_one(smoothness: float, dtype: torch.dtype) -> None:
    case = quadratic(dtype, smoothness, 20)
    assert isinstance(case.fn, Ridge)
    # b enters as f(z) + b, so its gradient is u itself
    M, c, b = case.fn.M, case.fn.c, torch.zeros_like(case.z0, requires_grad=True)

    class Shifted(Ridge):
        def __call__(self, z: Tensor) -> Tensor:
            return super().__call__(z) + b

    solution = fixed_point(Shifted(M, c, case.fn.phi), case.z0, solver=NewtonCG(), throw="ignore")
    g = random(20, 2, seed=4).to(dtype)
    (u,) = torch.autograd.grad(solution.value, b, g)
    left = case.fn.hessian(case.z0)(u) - g
    assert solution.gradient.residual is not None
    assert float(left.norm() / g.norm()) <= 3 * max(float(solution.gradient.residual), 1e-15)


def test_the_reported_residual_of_a_plain_map_is_the_true_one() -> None:
    # ‖u‖ is about a hundred times ‖g‖
    rotation = torch.linalg.qr(random(40, 40)).Q
    A = rotation @ torch.diag(torch.linspace(-0.9, 0.99, 40, dtype=F64)) @ rotation.mT
    b, g = torch.zeros(40, dtype=F64, requires_grad=True), rotation[:, -1] + 0.1 * random(40, seed=1)
    adjoint = Implicit(Stop(1e-3, 500))
    solution = fixed_point(
        lambda z: A @ z + b, random(40, seed=2), stop=Stop(1e-8, 500), adjoint=adjoint, throw="ignore"
    )
    (u,) = torch.autograd.grad(solution.value, b, g)
    true = float((u - A.mT @ u - g).norm() / g.norm())
    assert solution.gradient.status is Status.CONVERGED
    assert solution.gradient.residual is not None
    assert_close(float(solution.gradient.residual), true, rtol=1e-6, atol=1e-12)
    assert true <= adjoint.stop.tol


def test_the_report_is_per_block() -> None:
    w = torch.tensor([0.5, 0.2, 0.9, 0.1], dtype=F64, requires_grad=True)
    inner = Blocks(torch.tensor([1, 0, 1, 0]), 2)
    solution = fixed_point(lambda z: torch.tanh(w * z + 1), torch.zeros(4, dtype=F64), inner=inner)
    torch.autograd.backward((solution.value * torch.tensor([0.0, 1.0, 0.0, 2.0])).sum())
    assert solution.gradient.residual is not None
    assert solution.gradient.residual.shape == (2,)
    assert float(solution.gradient.residual[1]) == 0.0  # nothing comes back to that block
    assert w.grad is not None
    assert w.grad[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("make", [Plain, energy], ids=["plain", "energy"])
def test_no_gradient_reaches_the_start_of_an_exact_solve(make: type[Plain]) -> None:
    z0 = start().requires_grad_()
    solution = fixed_point(make(), z0)
    torch.autograd.backward(solution.value.sum())
    assert z0.grad is None


@pytest.mark.parametrize("fn", [torch.cos, log_cosh(F64).fn], ids=["plain", "energy"])
@pytest.mark.parametrize("adjoint", ADJOINTS, ids=repr)
def test_without_parameters_there_is_nothing_to_differentiate(fn: Map, adjoint: Adjoint) -> None:
    solution = fixed_point(fn, torch.zeros(5, 2, dtype=F64), solver=Picard(), adjoint=adjoint)
    assert solution.converged
    assert not solution.value.requires_grad


def test_only_what_asks_for_a_gradient_gets_one() -> None:
    fixed, free = random(4, 3, norm=2.0), random(4, seed=1).requires_grad_()
    solution = fixed_point(Ridge(fixed, free), start())
    torch.autograd.backward(solution.value.sum())
    assert free.grad is not None
    assert float(free.grad.norm()) > 0
    assert fixed.grad is None


@pytest.mark.parametrize("make", [Plain, energy], ids=["plain", "energy"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=name)
@pytest.mark.parametrize("adjoint", ADJOINTS, ids=repr)
def test_it_solves_where_gradients_are_switched_off(
    make: type[Plain], mode: type[torch.no_grad], adjoint: Adjoint
) -> None:
    fn = make()
    with mode():
        quiet = fixed_point(fn, start(), adjoint=adjoint)
    assert not quiet.value.requires_grad
    assert quiet.converged
    loud = fixed_point(fn, start(), adjoint=adjoint)
    assert loud.value.requires_grad
    assert torch.equal(quiet.value, loud.value.detach())


@pytest.mark.parametrize("make", [Plain, energy], ids=["plain", "energy"])
@pytest.mark.parametrize("adjoint", ADJOINTS, ids=repr)
def test_backward_twice(make: type[Plain], adjoint: Adjoint) -> None:
    fn = make()
    parameter = fn.w if isinstance(fn, Plain) else fn.M
    loss = fixed_point(fn, start(), adjoint=adjoint).value.square().sum()
    (first,) = torch.autograd.grad(loss, parameter, retain_graph=True)
    (second,) = torch.autograd.grad(loss, parameter)
    assert torch.equal(first, second)
    assert float(first.norm()) > 0


def test_a_second_derivative_is_refused_rather_than_wrong() -> None:
    fn = Plain()

    def second_derivative() -> Tensor:
        loss = fixed_point(fn, start()).value.square().sum()
        (gradient,) = torch.autograd.grad(loss, fn.w, create_graph=True)
        return torch.autograd.grad(gradient.sum(), fn.w)[0]

    with pytest.raises(RuntimeError, match="first derivatives only"):
        second_derivative()


@pytest.mark.parametrize("make", [Plain, energy], ids=["plain", "energy"])
@pytest.mark.parametrize("adjoint", ADJOINTS, ids=repr)
@pytest.mark.parametrize("differentiate", [False, True])
def test_nothing_is_kept_alive(make: type[Plain], adjoint: Adjoint, differentiate: bool) -> None:
    gc.disable()
    try:
        fn = make()
        solution = fixed_point(fn, start(), adjoint=adjoint, solver=Anderson(2))
        if differentiate:
            torch.autograd.backward(solution.value.sum(), retain_graph=True)
        alive: list[weakref.ref[object]] = [weakref.ref(fn), weakref.ref(solution.value)]
        del fn, solution
        # no cycle either: nothing waits for the garbage collector
        assert [ref() for ref in alive] == [None, None]
    finally:
        gc.enable()
