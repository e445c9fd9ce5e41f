"""`Stop(measure=False)`: so many steps, and a residual only where no gradient is recorded."""

import pytest
import torch
from untyped import untyped

from gind.equilibrium import (
    Anderson,
    ConvergenceError,
    Implicit,
    Phantom,
    Picard,
    Status,
    Stop,
    Unrolled,
    fixed_point,
    unmeasured,
    watch,
)

STOP = Stop(0.0, 7, measure=False)


def problem() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(4, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64) / 3


class Counted:
    """z ↦ tanh(zW + b), which counts how often it is asked."""

    def __init__(self, W: torch.Tensor, b: torch.Tensor) -> None:
        self.W, self.b, self.calls = W, b, 0

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh(z @ self.W + self.b)


@pytest.mark.parametrize("adjoint", [Phantom(2, damping=1.0), Unrolled(), Implicit()], ids=lambda a: type(a).__name__)
def test_as_many_evaluations_as_steps(adjoint: Phantom | Unrolled | Implicit) -> None:
    b, W = problem()
    W.requires_grad_()
    fn = Counted(W, b)
    z = torch.zeros_like(b)
    for _ in range(9 if isinstance(adjoint, Phantom) else 7):
        z = torch.tanh(z @ W.detach() + b)
    with watch() as seen:
        solution = fixed_point(fn, torch.zeros_like(b), solver=Picard(1.0), stop=STOP, adjoint=adjoint)
    torch.testing.assert_close(solution.value, z)
    assert fn.calls == {Phantom: 9, Unrolled: 7, Implicit: 8}[type(adjoint)]
    assert solution.status is Status.UNMEASURED
    assert not solution.converged
    assert bool(solution.residual.isnan().all())
    assert len(seen) == 1
    torch.autograd.backward(solution.value.sum())
    assert W.grad is not None


def test_without_gradient_the_residual_is_measured_once() -> None:
    b, W = problem()

    def fn(z: torch.Tensor) -> torch.Tensor:
        return torch.tanh(z @ W + b)

    with torch.no_grad():
        marched = fixed_point(fn, torch.zeros_like(b), solver=Picard(1.0), stop=STOP, throw="ignore")
        usual = fixed_point(fn, torch.zeros_like(b), solver=Picard(1.0), stop=Stop(0.0, 7), throw="ignore")
    assert marched.status is usual.status is Status.MAX_STEPS
    assert torch.equal(marched.value, usual.value)
    torch.testing.assert_close(marched.residual, usual.residual)
    assert marched.steps == usual.steps == 7


def test_inside_of_unmeasured_no_evaluation_is_spent_on_the_residual() -> None:
    b, W = problem()
    fn = Counted(W, b)
    with torch.no_grad(), unmeasured():
        marched = fixed_point(fn, torch.zeros_like(b), solver=Picard(1.0), stop=STOP)
        asked = fixed_point(fn, torch.zeros_like(b), solver=Picard(1.0), stop=Stop(1e-3, 50))
    assert fn.calls == 7 + asked.steps + 1
    assert marched.status is Status.UNMEASURED
    assert bool(marched.residual.isnan().all())
    assert asked.converged  # a tolerance is always measured
    with torch.no_grad():
        assert fixed_point(fn, b, solver=Picard(1.0), stop=STOP, throw="ignore").status is Status.MAX_STEPS


def test_what_diverged_is_seen_without_a_measure() -> None:
    with torch.no_grad(), unmeasured(), pytest.raises(ConvergenceError, match="not finite"):
        fixed_point(lambda z: z * 1e30, torch.ones(3, 2), solver=Picard(1.0), stop=Stop(1e-3, 9, False), throw="raise")


def test_the_value_is_a_tensor_of_its_own() -> None:
    constant, start = torch.ones(3, 2), torch.zeros(()).expand(3, 2)
    once = Stop(0.0, 1, measure=False)
    after = fixed_point(lambda z: constant, start, solver=Picard(1.0), stop=once, adjoint=Phantom(2, 1.0))
    assert after.value is not constant
    assert after.value.data_ptr() != constant.data_ptr()
    none = fixed_point(lambda z: z, start, solver=Picard(1.0), stop=Stop(0.0, 0, False), adjoint=Unrolled())
    assert none.value.is_contiguous()


def test_nothing_is_warned_of_where_nothing_was_asked_for() -> None:
    b, W = problem()
    W.requires_grad_()
    fixed_point(lambda z: torch.tanh(z @ W + b), torch.zeros_like(b), solver=Picard(1.0), stop=STOP)


def test_infinity_is_seen() -> None:
    with torch.no_grad():
        solution = fixed_point(
            lambda z: z * 1e300 + 1,
            torch.zeros(2, 2, dtype=torch.float64),
            solver=Picard(1.0),
            stop=STOP,
            throw="ignore",
        )
    assert solution.status is Status.NONFINITE


def test_refusals() -> None:
    with pytest.raises(ValueError, match="Anderson steers by the residual"):
        fixed_point(torch.tanh, torch.zeros(2, 2), solver=Anderson(), stop=STOP)
    with pytest.raises(TypeError, match="measure"):
        untyped(Stop)(measure="no")
