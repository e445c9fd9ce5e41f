"""`project` on CSR is `project` on dense: value and gradient without dropout, distribution with it."""

import contextlib
from collections.abc import Callable, Iterator

import pytest
import torch
from graphs import MODEST, values
from hypothesis import given
from hypothesis import strategies as st
from matrices import features, matrices
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from gind.features import op, project
from gind.kernels import implementation

FUSED = not implementation("cpu").startswith("reference")


@pytest.fixture(params=["fused", "reference"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test on the numba kernels, and on their plain PyTorch definition."""
    if request.param == "fused":
        if not FUSED:
            pytest.skip("numba is not available")
        yield "fused"
        return
    with contextlib.ExitStack() as stack:
        for one in (op._thin, op._multiply, op._multiply_transposed) if FUSED else ():
            stack.enter_context(one.set_kernel_enabled("cpu", enabled=False))
        yield "reference"


def parameters(channels: int, columns: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    weight, bias = values(1, channels, columns, dtype=dtype), values(2, channels, dtype=dtype)
    return weight.requires_grad_(), bias.requires_grad_()


def gradients(x: Tensor, weight: Tensor, bias: Tensor, **options: float) -> list[Tensor]:
    """The result, and the gradients of a function of it."""
    out = project(x, weight, bias, training=bool(options), **options)
    return [out.detach(), *torch.autograd.grad(out.sin().sum(), (weight, bias))]


@MODEST
@given(x=matrices(), channels=st.integers(1, 5))
def test_without_dropout_sparse_is_dense(x: Tensor, channels: int) -> None:
    weight, bias = parameters(channels, x.shape[1])
    expected = gradients(x.to_dense(), weight, bias)
    assert_close(gradients(x, weight, bias), expected, rtol=1e-12, atol=1e-12)
    assert_close(project(x, weight), project(x.to_dense(), weight), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 1e-4), (torch.float64, 1e-12)], ids=str)
@pytest.mark.parametrize("channels", [1, 16, 33, 130])
def test_many_channels(dtype: torch.dtype, tol: float, channels: int, kernels: str) -> None:
    x = features(60, 50, 0.1, dtype)
    weight, bias = parameters(channels, 50, dtype)
    actual = gradients(x.to_sparse_csr(), weight, bias)
    assert_close(actual, gradients(x, weight, bias), rtol=tol, atol=tol)
    assert all(a.dtype == dtype for a in actual)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (5, 4)], ids=str)
def test_nothing_stored(shape: tuple[int, int], kernels: str) -> None:
    x = torch.zeros(shape, dtype=torch.float64).to_sparse_csr()
    weight, bias = parameters(2, shape[1])
    out, grad_weight, grad_bias = gradients(x, weight, bias, dropout=0.5)
    assert torch.equal(out, bias.detach().expand(shape[0], 2))
    assert torch.equal(grad_weight, torch.zeros_like(weight))
    assert_close(grad_bias, shape[0] * bias.detach().cos())


def test_gradcheck(kernels: str) -> None:
    x = features(6, 5, 0.4).to_sparse_csr()

    def dropped(weight: Tensor, bias: Tensor) -> Tensor:
        torch.manual_seed(0)
        return project(x, weight, bias, dropout=0.3, training=True)

    weight, bias = parameters(3, 5)
    for fn in (lambda w, c: project(x, w, c), dropped):
        assert gradcheck(fn, (weight, bias))
        assert gradgradcheck(lambda w, c, fn=fn: fn(w, c).sin(), (weight, bias))


def test_operators_fulfil_torchs_contract() -> None:
    x = features(6, 5, 0.4).to_sparse_csr()
    matrix = x.crow_indices().clone(), x.col_indices().clone(), x.values().clone()
    bits = torch.arange(len(matrix[1]), dtype=torch.int32) - 3
    torch.library.opcheck(op._thin, (*matrix, bits, 0, 2.0))
    dense, other = (values(0, rows, 3, dtype=torch.float64) for rows in (5, 6))
    for either in (dense, dense.t().contiguous().t()):
        torch.library.opcheck(op._multiply, (*matrix, either.requires_grad_()))
    for flipped in (False, True):
        torch.library.opcheck(op._multiply_transposed, (*matrix, other.requires_grad_(), 5, flipped))


def test_the_gradient_of_a_weight_lies_as_the_weight_does(kernels: str) -> None:
    """Otherwise autograd copies it, once per step."""
    weight, _ = parameters(70, 50)
    (grad,) = torch.autograd.grad(project(features(40, 50, 0.2).to_sparse_csr(), weight).sum(), [weight])
    assert grad.stride() == weight.stride()


def dropped(x: Tensor, p: float, seed: int = 0) -> Tensor:
    """dropout(X) itself: the weight is the identity."""
    torch.manual_seed(seed)
    return project(x, torch.eye(x.shape[1], dtype=x.dtype), dropout=p, training=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_an_entry_is_dropped_or_scaled(p: float, dtype: torch.dtype, kernels: str) -> None:
    x = features(40, 30, 0.2, dtype)
    out = dropped(x.to_sparse_csr(), p)
    kept = out != 0
    assert not kept[x == 0].any()
    assert torch.equal(out[kept], x[kept] * (1 / (1 - p)))
    assert 0 < kept.sum() < (x != 0).sum()


@pytest.mark.skipif(not FUSED, reason="numba is not available")
def test_the_same_entries_are_dropped_by_every_implementation() -> None:
    x = features(40, 30, 0.2).to_sparse_csr()
    matrix = x.crow_indices(), x.col_indices(), x.values()
    bits = torch.randint(-(2**31), 2**31, (len(matrix[1]),), generator=torch.Generator().manual_seed(0)).int()
    fused = op._thin(*matrix, bits, -7, 1.5)
    with op._thin.set_kernel_enabled("cpu", enabled=False):
        expected = op._thin(*matrix, bits, -7, 1.5)
    for a, e in zip(fused, expected, strict=True):
        assert torch.equal(a, e)


@pytest.mark.parametrize("p", [0.3, 0.8])
def test_distribution_is_that_of_dense_dropout(p: float) -> None:
    """Kept entries: mean and variance over draws, per entry and jointly with the next entry, within 5 σ."""
    draws, entries = 4000, 51
    row = torch.arange(1, entries + 1, dtype=torch.float64)
    torch.manual_seed(0)
    x = row.expand(draws, entries).contiguous()
    for layout in (x, x.to_sparse_csr()):
        kept = (dropped(layout, p) != 0).double()
        error = 5 * (p * (1 - p) / draws) ** 0.5
        assert (kept.mean(0) - (1 - p)).abs().max() < error
        assert (kept[1:, :] * kept[:-1, :]).mean(0).sub((1 - p) ** 2).abs().max() < 2 * error  # from row to row
        both = (kept[:, 1:] * kept[:, :-1]).mean(0)
        q = (1 - p) ** 2
        assert (both - q).abs().max() < 5 * (q * (1 - q) / draws) ** 0.5


@pytest.mark.parametrize("p", [0.5, 0.8])
def test_mean_and_variance_of_the_projection(p: float) -> None:
    """E = X Wᵀ and Var = p / (1 - p) Σ_j x_j² w_j², for both layouts."""
    draws, columns = 20000, 12
    x = features(1, columns, 0.6)
    weight = values(3, 4, columns, dtype=torch.float64)
    many = x.expand(draws, columns).contiguous()
    mean = x @ weight.t()
    variance = p / (1 - p) * x.square() @ weight.t().square()
    for layout in (many, many.to_sparse_csr()):
        torch.manual_seed(1)
        out = project(layout, weight, dropout=p, training=True)
        deviation = out - mean
        assert (deviation.mean(0).abs() < 5 * (variance[0] / draws).sqrt()).all()
        squares = deviation.square()
        assert ((squares.mean(0) - variance[0]).abs() < 5 * squares.std(0) / draws**0.5).all()


@pytest.mark.parametrize(("p", "share"), [(1e-9, 1.0), (1 - 1e-12, 0.0)])
def test_extreme_dropout(p: float, share: float) -> None:
    assert (dropped(torch.ones(50, 40, dtype=torch.float64).to_sparse_csr(), p) != 0).double().mean() == share


def test_random_numbers_come_from_torchs_generator() -> None:
    x = features(30, 20, 0.3).to_sparse_csr()
    weight, bias = parameters(4, 20)
    torch.manual_seed(7)
    first = gradients(x, weight, bias, dropout=0.5)
    state = torch.get_rng_state()
    second = gradients(x, weight, bias, dropout=0.5)
    assert not torch.equal(first[0], second[0])
    torch.set_rng_state(state)
    for a, e in zip(gradients(x, weight, bias, dropout=0.5), second, strict=True):
        assert torch.equal(a, e)


@pytest.mark.parametrize("sparse", [False, True])
def test_no_random_numbers_without_dropout(sparse: bool) -> None:
    x = features(10, 8, 0.3)
    x = x.to_sparse_csr() if sparse else x
    weight, bias = parameters(4, 8)
    state = torch.get_rng_state()
    expected = project(x, weight, bias)
    assert torch.equal(project(x, weight, bias, dropout=0.0, training=True), expected)
    assert torch.equal(project(x, weight, bias, dropout=0.5, training=False), expected)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("channels", [16, 17, 70])
def test_number_of_threads_does_not_change_a_bit(channels: int) -> None:
    x = features(300, 200, 0.1, torch.float32).to_sparse_csr()  # with 17 channels, enough work for two threads
    weight, bias = parameters(channels, 200, torch.float32)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2, 1):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        results.append(gradients(x, weight, bias, dropout=0.2))
    torch.set_num_threads(before)
    for result in results[1:]:
        for a, e in zip(result, results[0], strict=True):
            assert torch.equal(a, e)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
def test_without_autograd(mode: Callable[[], torch.no_grad]) -> None:
    x = features(6, 5, 0.4)
    sparse = x.to_sparse_csr()
    weight, bias = parameters(3, 5)
    with mode():
        assert_close(project(sparse, weight, bias), project(x, weight, bias))
        made_here = x.clone().to_sparse_csr()
        assert_close(project(made_here, weight, bias, dropout=0.5, training=True).shape, (6, 3))
    assert_close(gradients(sparse, weight, bias), gradients(x, weight, bias))


def test_only_what_is_needed_gets_a_gradient() -> None:
    x = features(6, 5, 0.4).to_sparse_csr()
    weight, bias = parameters(3, 5)
    assert not project(x, weight.detach(), bias.detach()).requires_grad
    (grad,) = torch.autograd.grad(project(x, weight.detach(), bias).sum(), bias)
    assert torch.equal(grad, torch.full_like(bias, 6))
