"""Accuracy of σ, its primitive and its chord at every magnitude, measured through the kernels on a single edge."""

from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from graphs import raw
from torch import Tensor

from gind.kernels import compiled, cpu, reference

Array = np.ndarray[Any, Any]
MODULES = pytest.mark.parametrize("module", [compiled, cpu, reference], ids=["compiled", "cpu", "reference"])
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def edges(module: ModuleType, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    graph = raw([(0, 1)], 2, dtype)
    return graph.fused if module is not reference else graph.plain


def on_one_edge(module: ModuleType, v: Tensor, activation: str = "tanh") -> tuple[Array, Array]:
    """σ(v) and σ̃(v), one channel per value."""
    y = torch.stack([torch.zeros_like(v), v])
    out, sums = module.flux(y, edges(module, v.dtype), torch.empty(0, dtype=torch.long), 1, activation, True)
    assert torch.equal(out[0].nan_to_num(7), -out[1].nan_to_num(-7))
    return out[1].numpy(), sums[2, 0].numpy()


def samples(dtype: torch.dtype) -> Tensor:
    """Finite numbers evenly spread over the bit patterns, hence over all exponents, and more of them near 1."""
    if dtype == torch.float32:
        bits = np.arange(0, 0x7F800000, 4093, dtype=np.uint32)
        limit = np.float32(9).view(np.uint32) + np.arange(-2000, 2000)
        size = np.concatenate([bits, limit.astype(np.uint32)]).view(np.float32)
    else:
        spread = np.arange(0, 0x7FF << 52, (0x7FF << 52) // 500_000, dtype=np.uint64).view(np.float64)
        size = np.concatenate([spread, np.geomspace(1e-3, 30, 100_000)])
    return torch.from_numpy(np.concatenate([size, -size]))


def log_cosh(v: Array) -> Array:
    x = np.abs(v.astype(np.longdouble))
    near = np.log1p(np.sinh(np.minimum(x, 100)) ** 2) / 2
    exact: Array = np.where(x < 100, near, x - np.log(np.longdouble(2)))
    return exact


@MODULES
@DTYPES
def test_tanh_is_accurate_at_every_magnitude(module: ModuleType, dtype: torch.dtype) -> None:
    v = samples(dtype)
    exact = np.tanh(v.double().numpy())
    error = np.abs(on_one_edge(module, v)[0] - exact)
    assert error.max() <= {torch.float32: 4e-7, torch.float64: 1e-15}[dtype]
    # relative, so that differences far below 1 still diffuse; not in the subnormal range
    normal = np.abs(exact) > 1e3 * torch.finfo(dtype).tiny
    allowed = {torch.float32: 4, torch.float64: 8}[dtype] * torch.finfo(dtype).eps
    assert (error[normal] / np.abs(exact[normal])).max() <= allowed


@MODULES
@DTYPES
def test_log_cosh_is_accurate_at_every_magnitude(module: ModuleType, dtype: torch.dtype) -> None:
    v = samples(dtype)
    exact, actual = log_cosh(v.numpy()), on_one_edge(module, v)[1]
    normal = exact > 1e3 * torch.finfo(dtype).tiny  # below, v²/2 underflows
    error = np.abs(actual - exact)
    assert (error[normal] / exact[normal]).max() <= {torch.float32: 1e-6, torch.float64: 1e-14}[dtype]
    assert error[~normal].max() <= 1e3 * torch.finfo(dtype).tiny


@MODULES
@DTYPES
def test_tanh_of_nan_and_infinity(module: ModuleType, dtype: torch.dtype) -> None:
    v = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0], dtype=dtype).repeat(9)
    sigma, primitive = on_one_edge(module, v)
    expected = np.tile([np.nan, 1.0, -1.0, 0.0], 9)
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=5e-7)
    np.testing.assert_array_equal(primitive, np.tile([np.nan, np.inf, np.inf, 0.0], 9))


@MODULES
@DTYPES
def test_identity_passes_everything_through(module: ModuleType, dtype: torch.dtype) -> None:
    v = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, 3.0], dtype=dtype).repeat(9)
    sigma, primitive = on_one_edge(module, v, "identity")
    np.testing.assert_array_equal(sigma, v.numpy())
    np.testing.assert_array_equal(primitive, (v * v / 2).numpy())


def chord(v: float) -> tuple[float, float]:
    """tanh(v)/v and its derivative."""
    with mpmath.workdps(100):
        x = mpmath.mpf(v)
        slope = mpmath.tanh(x) / x
        return float(slope), float((mpmath.sech(x) ** 2 - slope) / x)


def magnitudes(dtype: torch.dtype) -> Tensor:
    """Differences from subnormal to huge, both signs, more of them where the series meets the quotient."""
    lowest = -44 if dtype == torch.float32 else -322
    size = np.concatenate([np.geomspace(1e-6, 10, 200), 10.0 ** np.linspace(lowest, 30, 100)])
    v = torch.from_numpy(np.concatenate([size, -size])).to(dtype)
    return v[v != 0]


@MODULES
@DTYPES
def test_secant_is_accurate_at_every_magnitude(module: ModuleType, dtype: torch.dtype) -> None:
    v = magnitudes(dtype)
    y, t = torch.stack([torch.zeros_like(v), v]), torch.tensor([[0.0], [1.0]], dtype=dtype).expand(2, len(v))
    actual = module.flux_secant(y, t.contiguous(), edges(module, dtype), "tanh")[1]
    expected = torch.tensor([chord(x)[0] for x in v.tolist()], dtype=dtype)
    torch.testing.assert_close(actual, expected, rtol=8 * torch.finfo(dtype).eps, atol=0)


@DTYPES
def test_secant_curve_is_accurate_at_every_magnitude(dtype: torch.dtype) -> None:
    v = magnitudes(dtype)
    v = v[v.abs() > 1e-30]
    y, t = torch.stack([torch.zeros_like(v), v]), torch.tensor([[0.0], [1.0]], dtype=dtype).expand(2, len(v))
    actual = reference.secant_curve(y, t.contiguous(), t.contiguous(), edges(reference, dtype), "tanh")[1]
    expected = torch.tensor([chord(x)[1] for x in v.tolist()], dtype=dtype)
    # the derivative is of order min(v, 1/v²); its quotient form loses digits as v shrinks, a few are allowed
    torch.testing.assert_close(actual, expected, rtol=torch.finfo(dtype).eps ** 0.5 / 3, atol=0)


@MODULES
@DTYPES
@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_overflowing_differences_make_no_nan(module: ModuleType, dtype: torch.dtype, activation: str) -> None:
    """y is finite but y_j - y_i is not: the tangent, the chord and their curvatures have limits."""
    huge = torch.finfo(dtype).max
    y = torch.tensor([[huge], [-huge]], dtype=dtype).repeat(1, 33)
    t = torch.tensor([[1.0], [2.0]], dtype=dtype).repeat(1, 33)
    flat = 1.0 if activation == "identity" else 0.0
    arguments = edges(module, dtype), activation
    for out, limit in (
        (module.flux_jvp(y, t, *arguments), flat),
        (module.flux_secant(y, t, *arguments), flat),
        (module.flux_curve(y, t, t, *arguments), 0.0),
        (reference.secant_curve(y, t, t, edges(reference, dtype), activation), 0.0),
    ):
        torch.testing.assert_close(out[1], torch.full_like(out[1], limit), rtol=0, atol=2e-6)
