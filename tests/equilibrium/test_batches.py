"""Several problems in one solve: each ends as if it were alone, and stands still once it is done."""

import dataclasses
from collections.abc import Callable
from typing import cast

import pytest
import torch
from cases import SOLVERS
from problems import Batch, Case, EnergyBatch, Ridge, batch, log_cosh, mirrored, quadratic, random, together, zero
from solver_cases import name, run
from torch import Tensor
from torch.testing import assert_close

from gind.equilibrium import Anderson, Blocks, Broyden, Implicit, Picard, Solver, Status, Stop, fixed_point
from gind.equilibrium.energy import Map

F64 = torch.float64
FOR_ANY_MAP: list[Solver] = [Picard(), Anderson(), Broyden()]


def parts(case: Case, z: Tensor) -> list[Tensor]:
    """The blocks of z."""
    return cast(EnergyBatch, case.fn).split(z.detach())


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_a_batch_ends_where_each_block_ends_alone(solver: Solver) -> None:
    alone = [quadratic(F64), log_cosh(F64), zero(F64), mirrored(F64), log_cosh(F64, 0.5)]
    case = batch(F64)
    solution = run(case, solver, Stop(1e-10, 1000))
    assert solution.status is Status.CONVERGED
    singles = [run(single, solver, Stop(1e-10, 1000)) for single in alone]
    for block, single in zip(parts(case, solution.value), singles, strict=True):
        assert_close(block, single.value, rtol=0, atol=1e-8)
    if not isinstance(solver, Broyden):  # its restarts fall on the same step for all blocks
        assert solution.steps == max(single.steps for single in singles)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_residual_and_bound_are_per_block(solver: Solver) -> None:
    case = batch(F64)
    solution = run(case, solver, Stop(1e-10, 4))
    assert solution.residual.shape == solution.bound.shape == (5,)
    assert solution.residual.dtype == solution.bound.dtype == F64
    energy = cast(EnergyBatch, case.fn)
    for i, (part, z) in enumerate(zip(energy.parts, parts(case, solution.value), strict=True)):
        gap = float((z - part(z)).norm())
        assert_close(float(solution.bound[i]), gap + float(part.rounding(z)))
        assert_close(float(solution.residual[i]), gap / float(part(z).norm()) if gap else 0.0)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_an_easy_block_does_not_feel_how_hard_its_neighbor_is(solver: Solver) -> None:
    easy, tol = log_cosh(F64, 2.0), 1e-8
    alone = run(easy, solver, Stop(tol, 1000))
    neighbors = [log_cosh(F64, 3.0), log_cosh(F64, 30.0), quadratic(F64, 1e3, 12)]
    values, extra = [], []
    for hard in neighbors:
        case = together([easy, hard])
        solution = run(case, solver, Stop(tol, alone.steps + 100))
        values.append(parts(case, solution.value)[0])
        extra.append(solution.steps - alone.steps)
    assert max(extra) >= min(extra) + 3
    assert all(torch.equal(value, values[0]) for value in values)
    assert_close(values[0], alone.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_a_block_that_is_done_stands_still(solver: Solver) -> None:
    case = together([zero(F64), quadratic(F64, 1e3, 12), log_cosh(F64)])
    start = cast(EnergyBatch, case.fn).join([zero(F64).z0, quadratic(F64, 1e3, 12).z0, log_cosh(F64).exact])
    solution = run(case, solver, Stop(1e-8, 3), z0=start)
    assert solution.status is Status.MAX_STEPS
    still, moved, at_home = parts(case, solution.value)
    assert torch.equal(still, torch.zeros_like(still))
    assert torch.equal(at_home, log_cosh(F64).exact)
    assert float(moved.norm()) > 0
    assert "1 of 3 problems open" in str(solution)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_the_order_of_rows_does_not_matter(solver: Solver) -> None:
    singles = [quadratic(F64), log_cosh(F64), mirrored(F64)]
    first, second = (together(singles, seed=seed) for seed in (0, 1))
    assert not torch.equal(cast(Blocks, first.inner).index, cast(Blocks, second.inner).index)
    ends = [run(case, solver, Stop(1e-10, 500)) for case in (first, second)]
    for a, b in zip(parts(first, ends[0].value), parts(second, ends[1].value), strict=True):
        assert_close(a, b, rtol=0, atol=1e-9)
    assert_close(ends[0].residual, ends[1].residual, rtol=1e-3, atol=1e-10)


@pytest.mark.parametrize("solver", FOR_ANY_MAP, ids=name)
def test_an_empty_block_is_no_obstacle(solver: Solver) -> None:
    slope = torch.tensor([0.2, -0.5, 0.7, 0.1], dtype=F64, requires_grad=True)
    inner = Blocks(torch.tensor([2, 0, 0, 2]), 4)
    solution = fixed_point(
        lambda z: slope * z + 1, torch.zeros(4, dtype=F64), solver=solver, stop=Stop(1e-10), inner=inner
    )
    assert solution.converged
    assert solution.residual.tolist()[1::2] == [0.0, 0.0]
    assert_close(solution.value.detach(), 1 / (1 - slope.detach()))
    (gradient,) = torch.autograd.grad(solution.value.sum(), slope)
    assert_close(gradient, 1 / (1 - slope.detach()) ** 2, rtol=1e-5, atol=0)


@pytest.mark.parametrize("solver", FOR_ANY_MAP, ids=name)
def test_plain_maps_in_a_batch(solver: Solver) -> None:
    index = torch.tensor([1, 0, 2, 0, 1, 2, 2])
    A = [random(n, n, seed=n, norm=norm) for n, norm in ((2, 0.3), (2, 0.6), (3, 0.9))]

    def update(a: Tensor) -> Map:
        return lambda z: torch.tanh(a @ z + 1)

    fn = Batch([update(a) for a in A], index)
    solution = fixed_point(
        fn, torch.zeros(7, 2, dtype=F64), solver=solver, stop=Stop(1e-9, 300), inner=Blocks(index, 3)
    )
    assert solution.converged
    for a, z in zip(A, fn.split(solution.value.detach()), strict=True):
        assert_close(z, torch.tanh(a @ z + 1), rtol=0, atol=1e-8)


def test_the_gradient_of_a_batch_is_that_of_its_blocks() -> None:
    case = batch(F64)
    energy = cast(EnergyBatch, case.fn)
    scale = torch.ones(5, dtype=F64, requires_grad=True)

    def scaled(s: Tensor) -> EnergyBatch:
        both = zip(energy.parts, s, strict=True)
        return EnergyBatch([dataclasses.replace(part, c=factor * part.c) for part, factor in both], energy.index)

    weight = random(*case.z0.shape, seed=8)

    def loss(s: Tensor) -> Tensor:
        solution = fixed_point(
            scaled(s),
            case.z0,
            stop=Stop(1e-12, 500),
            adjoint=Implicit(Stop(1e-12, 500)),
            inner=case.inner,
            throw="raise",
        )
        return (weight * solution.value).sum()

    assert torch.autograd.gradcheck(loss, (scale,), fast_mode=True)


@pytest.mark.parametrize("as_given", [torch.nn.Identity(), lambda energy: lambda z: energy(z)], ids=["energy", "map"])
def test_a_block_that_hardly_matters_has_a_gradient_with_all_digits(as_given: Callable[[Map], Map]) -> None:
    # in float32 the squares of the smallest vanish, and those of the largest overflow
    sizes = torch.tensor([1.0, 1e-30, 1e-22, 1e22, 1e30])
    M, c = random(6, 4, norm=0.8).float(), random(6, 2, seed=1).float()
    leaves = [c.clone().requires_grad_() for _ in sizes]
    index = torch.arange(len(sizes)).repeat_interleave(4)
    fn = as_given(EnergyBatch([Ridge(M, leaf) for leaf in leaves], index))
    solution = fixed_point(
        fn, torch.zeros(len(index), 2), stop=Stop(1e-6, 200), adjoint=Implicit(), inner=Blocks(index, len(sizes))
    )
    gradients = torch.autograd.grad((solution.value * sizes[index][:, None]).sum(), leaves)
    for gradient, size in zip(gradients, sizes, strict=True):
        assert_close(gradient / size, gradients[0], rtol=1e-4, atol=1e-6)


def test_anderson_goes_on_where_the_squares_of_its_steps_vanish() -> None:
    # in float32 the residuals have squares, their differences, a twentieth of them, have none
    b = 3e-22 * random(3, 2, seed=1).float()
    solution = fixed_point(lambda z: 0.95 * z + b, torch.zeros(3, 2), solver=Anderson(), stop=Stop(1e-4, 300))
    assert solution.converged
    assert_close(solution.value / 3e-22, 20 * b / 3e-22, rtol=1e-2, atol=0)
