"""`dropout` against its definition: shares, means, gradients, the generator."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gind.features import Dropout, dropout


@settings(deadline=None)
@given(p=st.floats(0.01, 0.95), rows=st.integers(1, 9), columns=st.integers(1, 9), seed=st.integers(0, 99))
def test_each_number_is_left_out_or_scaled(p: float, rows: int, columns: int, seed: int) -> None:
    torch.manual_seed(seed)
    x = torch.rand(rows, columns, dtype=torch.float64) + 0.5
    y = dropout(x, p)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] / (1 - round(p * 2**16) / 2**16), rtol=1e-14, atol=0)


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.8, 0.99])
def test_the_share_is_p_in_every_place(p: float) -> None:
    torch.manual_seed(0)
    draws = torch.stack([dropout(torch.ones(40, 25), p) == 0 for _ in range(400)]).double()
    spread = (p * (1 - p)) ** 0.5
    assert abs(float(draws.mean()) - p) < 5 * spread / draws.numel() ** 0.5
    # no place of a machine word is special, and neighbors are independent
    assert float((draws.mean(0) - p).abs().max()) < 6 * spread / 400**0.5
    flat = draws.flatten(1) - p
    for lag in (1, 2, 3, 4, 8):
        correlation = float((flat[:, lag:] * flat[:, :-lag]).mean()) / spread**2
        assert abs(correlation) < 6 / flat.numel() ** 0.5


def test_gradient_is_the_mask() -> None:
    x = torch.rand(50, 7, requires_grad=True)
    y = dropout(x, 0.3)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x, y)


def test_generator_decides() -> None:
    x = torch.ones(101)
    torch.manual_seed(5)
    first, second = dropout(x, 0.5), dropout(x, 0.5)
    torch.manual_seed(5)
    assert torch.equal(first, dropout(x, 0.5))
    assert not torch.equal(first, second)


def test_ends_of_the_range_and_evaluation() -> None:
    x = torch.ones(3, 5)
    assert dropout(x, 0.0) is x
    assert dropout(x, 0.9, training=False) is x
    assert Dropout(0.9).eval()(x) is x
    assert not dropout(x, 1.0).any()
    assert dropout(x[:0], 0.5).shape == (0, 5)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="probability"):
            dropout(x, wrong)
