"""What every solver promises on every problem it applies to."""

import pytest
import torch
from cases import SOLVERS
from problems import ENERGIES, PLAIN, Case, Maker, affine, log_cosh, mirrored, random, zero
from solver_cases import ALL, CERTIFIED, DTYPES, TOL, name, pairs, run
from torch import Tensor
from torch.testing import assert_close

from gind.equilibrium import Anderson, Broyden, Contraction, Energy, Picard, Solution, Solver, Status, Stop

STAGES = (0, 1, 2, 5, 12, 30)


def expanding(dtype: torch.dtype) -> Case:
    """Every eigenvalue of A lies outside the unit disk: Picard runs away."""
    return affine(-1.5 * torch.linalg.qr(random(4, 4)).Q, random(4, 2, seed=1), dtype)


def residual_by_hand(case: Case, value: Tensor) -> Tensor:
    """‖z - f(z)‖ / ‖f(z)‖ block by block, 0/0 = 0."""
    z = value.detach()
    fz, index = case.fn(z), getattr(case.inner, "index", torch.zeros(len(z), dtype=torch.long))
    relative = []
    for block in range(case.inner.count):
        gap, size = ((a[index == block]).double().norm() for a in (z - fz, fz))
        relative.append(float(gap / size) if gap > 0 else 0.0)
    return torch.tensor(relative, dtype=torch.float64)


def promised(solution: Solution, case: Case) -> None:
    """What holds of every solution, however the solve ended."""
    assert solution.value.dtype == case.z0.dtype
    assert solution.value.shape == case.z0.shape
    rtol = 1e-5 if case.z0.dtype == torch.float32 else 1e-12
    assert_close(solution.residual, residual_by_hand(case, solution.value), rtol=rtol, atol=0)
    if solution.status is Status.CONVERGED:
        assert bool((solution.residual <= solution.tol).all())
    if solution.status is Status.MAX_STEPS:
        assert bool((solution.residual > solution.tol).any())


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize(("solver", "maker"), ALL)
def test_the_known_fixed_point_is_reached(solver: Solver, maker: Maker, dtype: torch.dtype) -> None:
    case = maker(dtype)
    solution = run(case, solver, Stop(TOL[dtype], 1000))
    assert solution.status is Status.CONVERGED
    promised(solution, case)
    # none of the problems is worse conditioned than this
    assert bool((case.distance(solution.value) <= 30 * TOL[dtype] * case.inner.norm(case.exact)).all())


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize(("solver", "maker"), CERTIFIED)
def test_the_bound_holds_at_every_stage(solver: Solver, maker: Maker, dtype: torch.dtype) -> None:
    case = maker(dtype)
    for max_steps in STAGES:
        solution = run(case, solver, Stop(TOL[dtype], max_steps))
        promised(solution, case)
        assert solution.steps <= max_steps
        assert bool((case.distance(solution.value) <= solution.bound + case.slack).all()), max_steps
        assert bool(solution.bound.isfinite().all())


@pytest.mark.parametrize(("solver", "maker"), pairs(ENERGIES))
def test_the_bound_holds_where_only_rounding_is_left(solver: Solver, maker: Maker) -> None:
    case = maker(torch.float32)
    solution = run(case, solver, Stop(0.0, 2000))
    assert bool((case.distance(solution.value) <= solution.bound + case.slack).all())


@pytest.mark.parametrize("solver", [Picard(), Anderson(), Broyden()], ids=name)
def test_the_bound_of_a_contraction_holds_where_only_rounding_is_left(solver: Solver) -> None:
    for shift in range(1, 8):
        # z* = shift / 0.3, which has no finite binary expansion
        case = affine(torch.tensor([[0.7]]), torch.full((1, 1), float(shift)), torch.float32)
        certified = Case(Contraction(case.fn, 0.7 + 1e-6), case.z0, case.exact, 0.0)
        solution = run(certified, solver, Stop(0.0, 200))
        assert float(case.distance(solution.value)) <= float(solution.bound)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_the_bound_holds_from_a_start_outside_the_subspace(solver: Solver) -> None:
    case = mirrored(torch.float64)
    for seed in range(5):
        for max_steps in STAGES:
            solution = run(case, solver, Stop(1e-10, max_steps), z0=random(5, 2, seed=seed))
            assert float(case.distance(solution.value)) <= float(solution.bound) + case.slack, (seed, max_steps)


@pytest.mark.parametrize("maker", PLAIN, ids=name)
def test_nothing_is_certified_about_a_plain_map(maker: Maker) -> None:
    solution = run(maker(torch.float64), Broyden(), Stop(1e-8, 100))
    assert solution.converged
    assert solution.bound.tolist() == [torch.inf]


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_anderson_reaches_a_fixed_point_that_repels(dtype: torch.dtype) -> None:
    case = expanding(dtype)
    solution = run(case, Anderson(10), Stop(TOL[dtype], 50))
    assert solution.converged
    assert float(case.distance(solution.value)) <= 30 * TOL[dtype] * float(case.exact.norm())


@pytest.mark.parametrize(("solver", "maker"), ALL)
def test_a_start_at_the_solution_takes_no_step(solver: Solver, maker: Maker) -> None:
    case = maker(torch.float64)
    solution = run(case, solver, Stop(1e-10, 100), z0=case.exact)
    assert (solution.steps, solution.status) == (0, Status.CONVERGED)
    assert torch.equal(solution.value, case.exact)


@pytest.mark.parametrize(("solver", "maker"), pairs([log_cosh, mirrored]))
def test_a_warm_start_saves_steps(solver: Solver, maker: Maker) -> None:
    case = maker(torch.float64)
    assert isinstance(case.fn, Energy)
    noise = case.fn.project(random(*case.z0.shape, seed=9))
    cold = run(case, solver, Stop(1e-8, 1000))
    warm = run(case, solver, Stop(1e-8, 1000), z0=case.exact + 1e-6 * noise)
    assert cold.converged
    assert warm.converged
    assert 0 < warm.steps < cold.steps


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_the_start_is_left_alone(solver: Solver) -> None:
    case = log_cosh(torch.float64)
    start = random(5, 2, seed=7)
    kept = start.clone()
    run(case, solver, Stop(1e-8, 500), z0=start)
    assert torch.equal(start, kept)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_a_zero_solution_is_reached_from_elsewhere(solver: Solver) -> None:
    # ‖f(z)‖ shrinks with ‖z - f(z)‖ here
    case = zero(torch.float64)
    start = random(3, 2)
    solution = run(case, solver, Stop(1e-6, 1000), z0=start)
    assert solution.status is Status.CONVERGED
    assert float(solution.value.norm()) <= 1e-5 * float(start.norm())


@pytest.mark.parametrize("solver", [Picard(), Anderson(), Broyden()], ids=name)
@pytest.mark.parametrize("shape", [(), (4,), (4, 1), (2, 3, 2), (0, 3)], ids=str)
def test_any_shape(solver: Solver, shape: tuple[int, ...]) -> None:
    case = Case(lambda z: z / 4 + 3, torch.zeros(shape), torch.full(shape, 4.0, dtype=torch.float64), 0.0)
    solution = run(case, solver, Stop(1e-6, 100))
    assert solution.converged
    assert solution.value.shape == shape
    assert_close(solution.value.double(), case.exact, rtol=1e-5, atol=0)
