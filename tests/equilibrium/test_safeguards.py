"""What keeps each solver on its way: step sizes, the guard of Anderson and Broyden, the line search of NewtonCG."""

import dataclasses
import itertools

import pytest
import torch
from cases import SOLVERS
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import SQUARE, Case, Maker, Ridge, affine, energy_case, log_cosh, mirrored, quadratic, random
from solver_cases import DTYPES, TOL, name, run
from torch.testing import assert_close

from gind.equilibrium import (
    Anderson,
    Broyden,
    Energy,
    HeavyBall,
    Nesterov,
    NewtonCG,
    Picard,
    Solution,
    Solver,
    Status,
    Stop,
    fixed_point,
)
from gind.equilibrium.energy import Map

F64 = torch.float64
BETAS = [None, 0.03, 1.0, 100.0]  # the default is about 0.1
GUARDED: list[Solver] = [*map(Anderson, (5,) * 4, BETAS), *map(Broyden, (20,) * 4, BETAS)]


def gap(case: Case, z: torch.Tensor) -> float:
    """‖z - f(z)‖."""
    return float((z - case.fn(z)).detach().norm())


@pytest.mark.parametrize("relative", [0.05, 0.5, 1.0, 1.5, 1.95])
@pytest.mark.parametrize("maker", [quadratic, log_cosh, mirrored], ids=name)
def test_the_energy_decreases_along_picard_below_two_over_L(maker: Maker, relative: float) -> None:
    case = maker(F64)
    assert isinstance(case.fn, Ridge)
    solver = Picard(relative / float(case.fn.smoothness))
    values = [float(case.fn.value(run(case, solver, Stop(0.0, k)).value)) for k in range(15)]
    assert all(after <= before + 1e-14 * abs(before) for before, after in itertools.pairwise(values))
    assert all(after < before for before, after in itertools.pairwise(values[:5]))


def test_the_default_step_of_picard_contracts_by_the_best_rate() -> None:
    case = quadratic(F64, 20.0)
    start = float(case.distance(case.z0))
    for k in range(0, 60, 5):
        reached = float(case.distance(run(case, Picard(), Stop(0.0, k)).value))
        assert reached <= (19 / 21) ** k * start * (1 + 1e-9)


def test_acceleration_pays_on_an_ill_conditioned_energy() -> None:
    steps = {solver: run(quadratic(F64, 300.0, 12), solver, Stop(1e-6, 4000)).steps for solver in SOLVERS}
    assert 300 < steps[Picard()] < 4000
    assert steps[Nesterov()] < steps[Picard()] / 3
    assert steps[HeavyBall()] <= steps[Nesterov()]
    assert steps[Anderson()] < steps[Picard()] / 3
    assert steps[NewtonCG()] < 15


class Bent(Energy):
    """E' = 25z, z + 24 or 25z - 24, below 1, below 2 and above: a heavy ball cycles for ever (Lessard et al., 2016)."""

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        return z - torch.where(z < 1, 25 * z, torch.where(z < 2, z + 24, 25 * z - 24))

    def value(self, z: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def hessian(self, z: torch.Tensor) -> Map:
        raise NotImplementedError

    @property
    def smoothness(self) -> torch.Tensor:
        return torch.tensor([25.0], dtype=F64)

    def rounding(self, z: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1, dtype=F64)


def test_a_heavy_ball_that_cycles_goes_on_as_nesterov(monkeypatch: pytest.MonkeyPatch) -> None:
    z0 = torch.tensor([3.3], dtype=F64)

    def solve() -> Solution:
        return fixed_point(Bent(), z0, solver=HeavyBall(), stop=Stop(1e-10, 400), throw="ignore")

    assert solve().converged
    assert abs(float(solve().value)) < 1e-9
    monkeypatch.setattr("gind.equilibrium.solvers.heavy_ball._patience", lambda root: torch.full_like(root, 1e6))
    endless = solve()
    assert endless.status is Status.MAX_STEPS
    assert 0.5 < abs(float(endless.value)) < 4


@pytest.mark.parametrize("smoothness", [2.5, 20.0])
def test_picard_without_damping_does_not_converge_and_says_so(smoothness: float) -> None:
    case = quadratic(F64, smoothness)
    solution = run(case, Picard(1.0), Stop(1e-6, 60))
    assert (solution.status, solution.steps) == (Status.MAX_STEPS, 60)
    assert gap(case, solution.value) > gap(case, case.z0)


@pytest.mark.parametrize("solver", GUARDED, ids=repr)
@pytest.mark.parametrize("maker", [quadratic, log_cosh], ids=name)
def test_a_bad_beta_does_not_prevent_convergence(solver: Solver, maker: Maker) -> None:
    case = maker(F64)
    solution = run(case, solver, Stop(1e-8, 1000))
    assert solution.status is Status.CONVERGED
    assert bool((case.distance(solution.value) <= solution.bound + case.slack).all())


@pytest.mark.parametrize("solver", GUARDED, ids=repr)
def test_no_solve_ends_farther_away_than_it_started(solver: Solver) -> None:
    case = quadratic(F64, 1e3, 12)
    ends = [gap(case, run(case, solver, Stop(1e-8, k)).value) for k in range(1, 20)]
    assert max(ends) <= gap(case, case.z0)


@pytest.mark.parametrize("solver", [Anderson(), Broyden()], ids=name)
@pytest.mark.parametrize("norm", [4.0, 100.0])
def test_no_solve_from_anywhere_ends_farther_away_than_it_started(solver: Solver, norm: float) -> None:
    case = log_cosh(F64, norm)
    for seed, scale in enumerate((0.1, 1.0, 10.0), start=1):
        start = scale * random(5, 2, seed=seed)
        ends = [gap(case, run(case, solver, Stop(1e-8, k), z0=start).value) for k in range(1, 12)]
        assert max(ends) <= gap(case, start), scale


def test_anderson_converges_on_an_ill_conditioned_energy() -> None:
    case = quadratic(F64, 1e4, 12)
    solution = run(case, Anderson(10), Stop(1e-6, 1000))
    assert solution.status is Status.CONVERGED
    assert float(case.distance(solution.value)) <= float(solution.bound) + case.slack


@pytest.mark.parametrize("solver", [Anderson(10), Broyden(40)], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_more_memory_than_dimensions(solver: Solver, dtype: torch.dtype, n: int) -> None:
    for seed in range(6):
        # after n steps the differences are linearly dependent
        M, c = random(n + 1, n, seed=seed, norm=3.0), random(n + 1, 1, seed=seed + 50)
        case = energy_case(Ridge(M.to(dtype), c.to(dtype)), (n, 1))
        solution = run(case, solver, Stop(TOL[dtype] / 10, 500))
        assert solution.status in (Status.CONVERGED, Status.STALLED), seed
        assert float(case.distance(solution.value)) <= float(solution.bound) + case.slack


@pytest.mark.parametrize("solver", [Anderson(), Broyden()], ids=name)
def test_equal_components_are_one_dimension(solver: Solver) -> None:
    exact = torch.full((3,), 0.8925736, dtype=F64)
    for _ in range(100):
        exact = torch.tanh(exact / 2 + 1)
    solution = run(Case(lambda z: torch.tanh(z / 2 + 1), torch.zeros(3, dtype=F64), exact, 0.0), solver, Stop(1e-10))
    assert solution.converged
    assert_close(solution.value.detach(), exact, rtol=1e-9, atol=0)


@pytest.mark.parametrize("solver", [Anderson(beta=1e-12), Broyden(beta=1e-12)], ids=repr)
def test_identical_iterates_do_no_harm(solver: Solver) -> None:
    case = log_cosh(torch.float32)
    start = case.exact.float() + 1
    # a step of this beta is lost in rounding: z + βr = z
    assert torch.equal(run(case, solver, Stop(1e-5, 1), z0=start).value, start)
    solution = run(case, solver, Stop(1e-5, 50), z0=start)
    assert solution.status is Status.MAX_STEPS
    assert bool(solution.value.isfinite().all())
    assert gap(case, solution.value) <= gap(case, start)


@pytest.mark.parametrize("norm", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("n", [5, 20])
def test_newton_needs_few_steps_however_strong_the_energy(norm: float, n: int) -> None:
    case = log_cosh(F64, norm, n)
    solution = run(case, NewtonCG(), Stop(1e-9, 30))
    assert solution.status is Status.CONVERGED
    assert solution.steps < 30
    assert float(case.distance(solution.value)) <= float(solution.bound) + case.slack


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_newton_comes_back_from_far_away(scale: float) -> None:
    case = log_cosh(F64, 30.0)
    solution = run(case, NewtonCG(), Stop(1e-9, 60), z0=scale * random(5, 2, seed=5))
    assert solution.status is Status.CONVERGED
    assert float(case.distance(solution.value)) <= float(solution.bound) + case.slack


class Bare(Ridge):
    """Its majorizer is the Hessian, as by default: full Newton steps overshoot where tanh is flat."""

    def majorizer(self, z: torch.Tensor) -> Map:
        return self.hessian(z)


@pytest.mark.parametrize("norm", [4.0, 30.0])
def test_the_line_search_of_newton_decreases_the_energy(norm: float) -> None:
    model = log_cosh(F64, norm)
    assert isinstance(model.fn, Ridge)
    case = dataclasses.replace(model, fn=Bare(model.fn.M, model.fn.c))
    start = 3 * random(5, 2, seed=5)
    ends = [run(case, NewtonCG(), Stop(1e-9, k), z0=start) for k in (*range(12), 200)]
    values = [float(model.fn.value(end.value)) for end in ends]
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(values))
    assert ends[-1].status is Status.CONVERGED


def test_broyden_ends_on_a_linear_map_after_twice_its_dimension() -> None:
    for seed in range(5):
        A, c = random(4, 4, seed=seed, norm=0.5), random(4, 1, seed=seed + 10)
        solution = run(affine(A, c, F64), Broyden(), Stop(1e-10, 100))
        assert solution.converged
        assert solution.steps <= 8 + 1, seed


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 20.0), st.integers(1, 6))
def test_every_solver_on_any_energy(seed: int, norm: float, n: int) -> None:
    M, c = random(n + 1, n, seed=seed, norm=norm), random(n + 1, 1, seed=seed + 1)
    for phi in (SQUARE, Ridge.phi):
        case = energy_case(Ridge(M, c, phi), (n, 1))
        for solver in SOLVERS:
            solution = run(case, solver, Stop(1e-6, 100))
            assert solution.status in (Status.CONVERGED, Status.MAX_STEPS), solver
            assert float(case.distance(solution.value)) <= float(solution.bound) + case.slack, solver
