"""Rows of length 1, of any size."""

import pytest
import torch
from torch.nn.functional import normalize
from torch.testing import assert_close

from gind.baselines.unit import unit_rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_moderate_size_are_those_of_torch(dtype: torch.dtype) -> None:
    x = torch.randn(20, 7, dtype=dtype)
    assert torch.equal(unit_rows(x), x / torch.linalg.vector_norm(x, dim=1, keepdim=True))
    assert_close(unit_rows(x), normalize(x, dim=1))


@pytest.mark.parametrize("size", [1e-290, 1e-200, 1e200])
def test_rows_of_any_size_keep_their_direction(size: float) -> None:
    x = torch.randn(20, 7, dtype=torch.float64)
    assert_close(unit_rows(size * x), normalize(x, dim=1))


def test_rows_of_zeros_stay_and_have_no_gradient() -> None:
    x = torch.zeros(3, 4, dtype=torch.float64)
    x[1], x[2, 0] = 1e-310, 2.0
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(unit_rows(x).sum(), x)
    assert bool((gradient[:2] == 0).all())
    assert_close(gradient[2], torch.tensor([0.0, 0.5, 0.5, 0.5], dtype=torch.float64))


def test_gradients_are_those_of_finite_differences() -> None:
    x = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(unit_rows, x)
