"""A solve that does not reach its tolerance says so, says why, and says it as asked."""

import warnings

import pytest
import torch
from cases import SOLVERS
from problems import Case, Maker, log_cosh, quadratic, random, zero
from solver_cases import name, pairs, run
from torch import Tensor
from torch.testing import assert_close

from gind.equilibrium import (
    Anderson,
    Blocks,
    Broyden,
    ConvergenceError,
    ConvergenceWarning,
    NewtonCG,
    Phantom,
    Picard,
    Solver,
    Status,
    Stop,
    Unrolled,
    fixed_point,
)
from gind.equilibrium.solution import Throw

F64 = torch.float64
FOR_ANY_MAP: list[Solver] = [Picard(), Anderson(), Broyden()]


class Breaks:
    """z ↦ z/2 + 1 until `step` steps are done, then NaN in row `row`."""

    def __init__(self, step: int, row: int = 0) -> None:
        self.step, self.row, self.calls = step, row, 0

    def __call__(self, z: Tensor) -> Tensor:
        self.calls += 1
        out = z / 2 + torch.linspace(1, 2, len(z), dtype=z.dtype) + 0.1 * z.flip(0).cos()
        out[self.row] = torch.nan if self.calls > self.step else out[self.row]
        return out


def test_raise_names_steps_and_residual() -> None:
    case = quadratic(F64)
    quiet = run(case, Picard(), Stop(1e-8, 7))
    with pytest.raises(ConvergenceError) as caught:
        fixed_point(case.fn, case.z0, solver=Picard(), stop=Stop(1e-8, 7), throw="raise")
    message = str(caught.value)
    assert "7 steps" in message
    assert f"{float(quiet.residual):.2e}" in message
    assert "1e-08" in message
    assert "max_steps" in message


def test_warn_is_the_default_and_points_at_the_caller() -> None:
    case = quadratic(F64)
    with pytest.warns(ConvergenceWarning, match="7 steps") as caught:
        solution = fixed_point(case.fn, case.z0, solver=Picard(), stop=Stop(1e-8, 7))
    assert [record.filename for record in caught] == [__file__]
    assert (solution.status, solution.steps, solution.converged) == (Status.MAX_STEPS, 7, False)


def test_ignore_is_silent() -> None:
    case = quadratic(F64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = fixed_point(case.fn, case.z0, solver=Picard(), stop=Stop(1e-8, 7), throw="ignore")
    assert (solution.status, solution.steps, solution.converged) == (Status.MAX_STEPS, 7, False)


@pytest.mark.parametrize("throw", ["raise", "warn", "ignore"])
def test_success_is_silent(throw: Throw) -> None:
    case = quadratic(F64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = fixed_point(case.fn, case.z0, stop=Stop(1e-8), throw=throw)
    assert solution.converged
    assert str(solution).startswith(f"The solve reached the tolerance in {solution.steps} steps")


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_no_steps_at_all(solver: Solver) -> None:
    case = log_cosh(F64)
    solution = run(case, solver, Stop(1e-8, 0), z0=random(5, 2))
    assert (solution.status, solution.steps) == (Status.MAX_STEPS, 0)
    assert torch.equal(solution.value, random(5, 2))


@pytest.mark.parametrize("solver", FOR_ANY_MAP, ids=name)
def test_nan_stops_at_once_and_names_the_step(solver: Solver) -> None:
    fn = Breaks(step=3)
    with pytest.raises(ConvergenceError, match=r"not finite at step 3\b.*NaN"):
        fixed_point(fn, torch.zeros(4, dtype=F64), solver=solver, stop=Stop(1e-12, 100), throw="raise")
    assert fn.calls == 4
    solution = fixed_point(Breaks(3), torch.zeros(4, dtype=F64), solver=solver, stop=Stop(1e-12, 100), throw="ignore")
    assert (solution.status, solution.steps) == (Status.NONFINITE, 3)


@pytest.mark.parametrize("adjoint", [Phantom(2), Unrolled()], ids=repr)
def test_nan_is_named_under_other_adjoints_too(adjoint: Phantom | Unrolled) -> None:
    solution = fixed_point(
        Breaks(3), torch.zeros(4, dtype=F64), solver=Picard(), stop=Stop(1e-12), adjoint=adjoint, throw="ignore"
    )
    assert (solution.status, solution.steps) == (Status.NONFINITE, 3)


def test_nan_in_one_block_is_nan() -> None:
    inner = Blocks(torch.tensor([0, 1, 0, 1]), 2)
    solution = fixed_point(Breaks(2, row=1), torch.zeros(4, dtype=F64), solver=Picard(), inner=inner, throw="ignore")
    assert solution.status is Status.NONFINITE
    assert solution.residual.isfinite().tolist() == [True, False]


@pytest.mark.parametrize(("solver", "maker"), pairs([quadratic, log_cosh]))
def test_rounding_ends_a_solve_that_asks_for_too_much(solver: Solver, maker: Maker) -> None:
    case = maker(torch.float32)
    solution = run(case, solver, Stop(0.0, 5000))
    assert solution.status is Status.STALLED
    assert solution.steps < 500
    assert float(solution.residual.max()) < 1e-4
    with pytest.raises(ConvergenceError, match="float64"):
        solution.report("raise")


def test_a_stalled_solve_is_still_stalled_after_phantom_steps() -> None:
    case = quadratic(torch.float32)
    solution = run(case, Anderson(), Stop(0.0, 5000), adjoint=Phantom(2))
    assert solution.status is Status.STALLED


def test_a_zero_equilibrium_is_still_reached_after_phantom_steps() -> None:
    case = zero(F64)
    solution = run(case, NewtonCG(), Stop(1e-6, 50), z0=random(3, 2), adjoint=Phantom(2))
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("solver", [Picard(), Broyden()], ids=name)
@pytest.mark.parametrize("shape", [(1,), (2, 3)], ids=str)
def test_running_away_is_not_convergence(solver: Solver, shape: tuple[int, ...]) -> None:
    for dtype in (torch.float32, F64):
        # the fixed point is -2; Picard's z grows by 1.5 each step, until its square overflows
        exact = torch.full(shape, -2.0, dtype=F64)
        case = Case(lambda z: 1.5 * z + 1, torch.zeros(shape, dtype=dtype), exact, 0.0)
        solution = run(case, solver, Stop(1e-6, 3000))
        assert not solution.converged or float(case.distance(solution.value)) < 1e-4, dtype


def test_a_small_scale_is_not_convergence() -> None:
    solution = fixed_point(lambda z: z / 2 + 1e-25, torch.zeros(2, 2), solver=Picard(), throw="raise")
    assert_close(solution.value.detach() * 1e25, torch.full((2, 2), 2.0), rtol=1e-4, atol=0)
