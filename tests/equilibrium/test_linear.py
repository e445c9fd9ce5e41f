"""Conjugate gradients against dense solves."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import Batch, random
from solver_cases import DTYPES, name
from torch import Tensor
from torch.testing import assert_close

from gind.equilibrium import Blocks, Whole
from gind.equilibrium.linear import conjugate_gradients

F64 = torch.float64
INDEX = torch.tensor([2, 0, 1, 1, 0, 2, 1, 2, 0])


def definite(n: int, largest: float, seed: int = 0) -> Tensor:
    """Symmetric, eigenvalues from 1 to `largest`."""
    rotation = torch.linalg.qr(random(n, n, seed=seed)).Q
    matrix: Tensor = rotation @ torch.diag(torch.linspace(1, largest, n, dtype=F64)) @ rotation.mT
    return matrix


def dense(matrix: Tensor, rhs: Tensor) -> Tensor:
    """numpy's answer."""
    return torch.from_numpy(np.linalg.solve(matrix.double().numpy(), rhs.double().numpy()))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10), st.floats(1.0, 1e3), st.integers(0, 1000))
def test_one_problem(n: int, largest: float, seed: int) -> None:
    A, rhs = definite(n, largest, seed), random(n, 2, seed=seed + 1)
    x, residual, steps = conjugate_gradients(lambda u: A @ u, rhs, Whole(), 1e-10, 100)
    assert_close(x, dense(A, rhs), rtol=0, atol=1e-8 * float(rhs.norm()))
    assert residual.shape == (1,)
    assert float(residual) <= 1e-10
    # two columns with the same matrix share their Krylov space
    assert 0 < steps <= 2 * n + 2


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_the_residual_is_the_true_one(dtype: torch.dtype) -> None:
    A, rhs = definite(20, 50.0).to(dtype), random(20, 2, seed=1).to(dtype)
    for tol in (0.3, 1e-2, 1e-4):
        x, residual, _ = conjugate_gradients(lambda u: A @ u, rhs, Whole(), tol, 100)
        true = float((A @ x - rhs).norm() / rhs.norm())
        assert_close(float(residual), true, rtol=0.05, atol=0)
        assert true <= 1.05 * tol


@pytest.mark.parametrize("largest", [1e2, 1e4, 1e6])
def test_the_residual_does_not_promise_more_than_float32_can_hold(largest: float) -> None:
    A, rhs = definite(40, largest).float(), random(40, 1, seed=1).float()
    x, residual, _ = conjugate_gradients(lambda u: A @ u, rhs, Whole(), 1e-6, 2000)
    true = float((A.double() @ x.double() - rhs.double()).norm() / rhs.double().norm())
    assert true <= 2 * float(residual)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 12), st.integers(0, 1000))
def test_a_preconditioner_changes_the_way_and_not_the_answer(n: int, seed: int) -> None:
    A, other, rhs = definite(n, 1e4, seed), definite(n, 9.0, seed + 1), random(n, 2, seed=seed + 2)
    for M, most in ((A, 1), (other, 20 * n)):
        inverse = functools.partial(torch.matmul, torch.linalg.inv(M))
        x, residual, steps = conjugate_gradients(lambda u: A @ u, rhs, Whole(), 1e-9, 1000, precondition=inverse)
        assert float(residual) <= 1e-9
        assert float((x - dense(A, rhs)).norm()) <= 2e-9 * float(rhs.norm())
        assert steps <= most


def test_blocks_are_solved_each_with_its_own_tolerance() -> None:
    parts = [definite(3, largest, seed) for seed, largest in enumerate((3.0, 30.0, 300.0))]
    batch = Batch([functools.partial(torch.matmul, a) for a in parts], INDEX)
    rhs = random(9, 2, seed=5)
    tol = torch.tensor([1e-1, 1e-6, 1e-12], dtype=F64)
    x, residual, _ = conjugate_gradients(batch, rhs, Blocks(INDEX, 3), tol, 100)
    assert residual.shape == (3,)
    assert bool((residual <= tol).all())
    for A, solved, b, allowed in zip(parts, batch.split(x), batch.split(rhs), tol, strict=True):
        # eigenvalues are at least 1, so the residual bounds the error
        assert float((solved - dense(A, b)).norm()) <= 1.01 * float(allowed * b.norm())


def test_a_solved_block_stands_still() -> None:
    easy, hard = torch.eye(3, dtype=F64), definite(6, 1e3)
    index = torch.tensor([1, 0, 1, 1, 0, 1, 1, 0, 1])
    batch = Batch([lambda u: easy @ u, lambda u: hard @ u], index)
    rhs = random(9, 1, seed=5)
    ends = [conjugate_gradients(batch, rhs, Blocks(index, 2), 1e-10, k) for k in (1, 2, 5, 50)]
    assert [end.steps for end in ends[:3]] == [1, 2, 5]
    solved = [batch.split(end.x)[0] for end in ends]
    assert_close(solved[0], batch.split(rhs)[0])
    assert all(torch.equal(x, solved[0]) for x in solved)
    assert_close(batch.split(ends[-1].x)[1], dense(hard, batch.split(rhs)[1]))


def test_a_zero_right_hand_side_takes_no_step() -> None:
    A = definite(4, 10.0)
    x, residual, steps = conjugate_gradients(lambda u: A @ u, torch.zeros(4, 2, dtype=F64), Whole(), 1e-6, 50)
    assert steps == 0
    assert torch.equal(x, torch.zeros(4, 2, dtype=F64))
    assert residual.tolist() == [0.0]


def test_a_zero_block_among_others() -> None:
    parts = [definite(3, 10.0, seed) for seed in range(3)]
    batch = Batch([functools.partial(torch.matmul, a) for a in parts], INDEX)
    rhs = torch.where((INDEX == 1)[:, None], 0.0, random(9, 2))
    x, residual, _ = conjugate_gradients(batch, rhs, Blocks(INDEX, 3), 1e-12, 50)
    assert float(residual[1]) == 0.0
    for A, solved, b in zip(parts, batch.split(x), batch.split(rhs), strict=True):
        assert_close(solved, dense(A, b))


def test_steps_are_limited_and_the_residual_says_what_is_left() -> None:
    A, rhs = definite(20, 1e3), random(20, 1)
    x, residual, steps = conjugate_gradients(lambda u: A @ u, rhs, Whole(), 1e-12, 3)
    assert steps == 3
    assert_close(float(residual), float((A @ x - rhs).norm() / rhs.norm()))
    assert float(residual) > 1e-3


def test_nan_ends_the_solve_at_once() -> None:
    rhs = torch.tensor([1.0, torch.nan])
    _, residual, steps = conjugate_gradients(lambda u: u, rhs, Whole(), 1e-6, 50)
    assert steps == 0
    assert bool(residual.isnan().all())
