"""Where a solve ends: a little below its tolerance if it can, and never above what it had reached."""

import dataclasses
from typing import Any

import pytest
import torch
from cases import make_input, make_layer
from torch import Tensor

import gind
from gind.equilibrium import Picard, Solver, Status, Stop, fixed_point
from gind.equilibrium.energy import Problem
from gind.equilibrium.inner import Blocks
from gind.equilibrium.solvers.base import Iterate
from gind.kernels.onecall import switched_off

F32, F64 = torch.float32, torch.float64
STEPS_TO_TRY = range(1, 80)


@dataclasses.dataclass(frozen=True)
class Scripted(Solver):
    """Goes where it is told, whatever the map says, and stays at the last place."""

    path: tuple[list[float], ...]

    def init(self, problem: Problem, z0: Tensor) -> int:
        return 0

    def step(self, problem: Problem, at: Iterate, state: Any) -> tuple[Tensor, Any]:
        return torch.tensor(self.path[min(state, len(self.path) - 1)])[:, None], state + 1


def one(z: Tensor) -> Tensor:
    """Its equilibrium is 1, and the residual of z is |z - 1|."""
    return torch.ones_like(z)


def scripted(path: list[list[float]], max_steps: int = 30) -> gind.Solution:
    count = len(path[0])
    return fixed_point(
        one,
        torch.full((count, 1), 3.0),
        solver=Scripted(tuple(path)),
        stop=Stop(1e-3, max_steps),
        inner=Blocks(torch.arange(count), count),
        throw="ignore",
    )


BETWEEN, LOWER, BELOW = 1.0009995, 1.0009990, 1.0005  # in float32 the aim is 0.000998


def test_the_aim_is_a_little_below_the_tolerance_and_at_least_half_of_it() -> None:
    assert Stop(1e-4).aim(F32) == pytest.approx(1e-4 - 16 * 2.0**-23)
    assert Stop(1e-6).aim(F32) == 5e-7
    assert Stop(1e-4).aim(F64) == pytest.approx(1e-4, rel=1e-10)
    assert Stop(0.0).aim(F32) == 0.0
    assert Stop(1e-2).aim(torch.bfloat16) == 5e-3


def test_what_is_within_its_tolerance_goes_on_to_its_aim() -> None:
    solution = scripted([[BETWEEN], [BELOW], [1.0]])
    assert solution.status is Status.CONVERGED
    assert solution.steps == 2
    assert float(solution.value) == pytest.approx(BELOW)


@pytest.mark.parametrize("max_steps", [3, 8, 30])
@pytest.mark.parametrize("after", [BETWEEN, 1.5, float("nan")])
def test_what_was_within_its_tolerance_goes_back_to_where_it_was(after: float, max_steps: int) -> None:
    solution = scripted([[BETWEEN], [LOWER], [after]], max_steps)
    assert solution.status is Status.CONVERGED
    assert float(solution.value) == pytest.approx(LOWER, abs=1e-7)
    assert float(solution.residual) == pytest.approx(LOWER - 1, rel=1e-3)
    assert solution.steps <= 12


def test_a_residual_that_rises_for_a_while_is_given_time() -> None:
    solution = scripted([[BETWEEN], [1.5], [1.4], [1.3], [BELOW], [9.0]])
    assert float(solution.value) == pytest.approx(BELOW)
    assert solution.steps == 5


@pytest.mark.parametrize("max_steps", [1, 2, 5, 30])
def test_within_is_of_the_relative_residual(max_steps: int) -> None:
    """The absolute one falls further, but so does f(z)."""

    def shrinking(z: Tensor) -> Tensor:
        return torch.stack([torch.zeros_like(z[0]), z[1]])

    path = ([0.0009995, 1.0], [0.00099, 0.9])
    start, stop = torch.full((2, 1), 3.0), Stop(1e-3, max_steps)
    solution = fixed_point(shrinking, start, solver=Scripted(path), stop=stop, throw="ignore")
    assert solution.status is Status.CONVERGED
    assert float(solution.residual) == pytest.approx(0.0009995, rel=1e-4)


def test_rounding_noise_is_not_chased_for_long() -> None:
    falling = [[BETWEEN - 1.2e-7 * number] for number in range(4) for _ in range(6)]
    solution = scripted([*falling, [1.5]])
    assert solution.status is Status.CONVERGED
    assert solution.steps == 11


def test_a_problem_that_breaks_down_goes_back_and_the_others_go_on() -> None:
    solution = scripted([[BETWEEN, 2.0], [float("nan"), 1.5], [7.0, BELOW]])
    assert solution.status is Status.CONVERGED
    assert solution.value[:, 0].tolist() == pytest.approx([BETWEEN, BELOW], abs=1e-7)


def test_steps_that_end_between_aim_and_tolerance_have_converged() -> None:
    solution = scripted([[BETWEEN]], max_steps=1)
    assert solution.status is Status.CONVERGED


def test_one_problem_goes_back_while_the_others_go_on() -> None:
    solution = scripted([[BETWEEN, 2.0, BELOW], [1.5, BETWEEN, 7.0], [8.0, LOWER, 8.0], [9.0, BELOW, 9.0]])
    assert solution.status is Status.CONVERGED
    assert solution.value[:, 0].tolist() == pytest.approx([BETWEEN, BELOW, BELOW], abs=1e-7)
    assert solution.steps == 11


@pytest.mark.parametrize("after", [1.5, float("inf")])
def test_steps_recorded_for_a_gradient_go_back_too(after: float) -> None:
    scale = torch.tensor(1.0, requires_grad=True)
    path = ([1.5], [BETWEEN], [after])

    class Scaled(Scripted):
        def step(self, problem: Problem, at: Iterate, state: Any) -> tuple[Tensor, Any]:
            z, number = super().step(problem, at, state)
            return scale * z, number

    solution = fixed_point(one, torch.full((1, 1), 3.0), solver=Scaled(path), stop=Stop(1e-3), adjoint=gind.Unrolled())
    torch.autograd.backward(solution.value.sum())
    assert scale.grad is not None
    assert float(scale.grad) == pytest.approx(BETWEEN)


def unequal() -> gind.Graph:
    """Four graphs that need different numbers of steps; one is empty."""
    edges = torch.tensor([[0, 2, 3, 4, 6, 7, 8, 9, 10], [1, 3, 4, 2, 7, 8, 9, 10, 6]])
    batch = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3])
    return gind.Graph.from_edge_index(edges, 12, batch=batch)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("solver", [gind.HeavyBall(), gind.Nesterov(), Picard()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("warm", [False, True])
def test_every_number_of_steps_ends_alike_in_one_call_and_step_by_step(
    solver: Solver, dtype: torch.dtype, warm: bool
) -> None:
    graph, b = unequal(), make_input(12, 4, dtype)
    layer = make_layer(3.0, 4, dtype, solver=solver)
    z0 = None
    if warm:  # one graph is there already
        with torch.no_grad():
            z0 = layer(b, graph, return_solution=True)[1].value
        z0[2:] = 0
    for steps in STEPS_TO_TRY:
        layer.stop = Stop(1e-4, steps)
        with torch.no_grad():
            at_once = layer(b, graph, z0=z0, return_solution=True)[1]
            with switched_off():
                general = layer(b, graph, z0=z0, return_solution=True)[1]
        assert at_once.status is general.status
        assert at_once.steps == general.steps
        torch.testing.assert_close(at_once.residual, general.residual, rtol=1e-2, atol=1e-7)
        if at_once.status is Status.CONVERGED:
            return
    raise AssertionError("it never converged")


@pytest.mark.parametrize("solver", [gind.HeavyBall(), gind.Nesterov(), gind.NewtonCG()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("at_once", [True, False], ids=["one call", "step by step"])
def test_more_steps_never_lose_a_tolerance_that_was_reached(solver: Solver, at_once: bool) -> None:
    graph = gind.Graph.from_edge_index(torch.randint(0, 20, (2, 50), generator=torch.Generator().manual_seed(0)), 20)
    lost = 0
    for seed in range(12):
        layer = make_layer(10.0, 16, F32, seed, solver=solver)
        b = make_input(20, 16, F32, seed)
        reached = False
        for steps in range(1, 120, 1 if isinstance(solver, gind.NewtonCG) else 2):
            layer.stop = Stop(1e-4, steps)
            with torch.no_grad():
                if at_once:
                    solution = layer(b, graph, return_solution=True)[1]
                else:
                    with switched_off():
                        solution = layer(b, graph, return_solution=True)[1]
            lost += reached and not solution.converged
            reached = solution.converged
            if float(solution.residual) <= layer.stop.aim(F32):
                break
    assert lost == 0
