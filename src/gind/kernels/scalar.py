"""Scalar functions for the numba kernels, written so that LLVM can run them on whole vectors.

No function here branches on data (selects only) or calls into libm, which would end vectorization. NaN goes in,
NaN comes out. Accuracy is tested over all magnitudes against 50-digit or float64 references:

| function | float32 | float64 |
| --- | --- | --- |
| tanh | 4e-7 absolute | 1e-15 absolute |
| log cosh | 1e-6 relative | 1e-14 relative |
"""

import numpy as np
from numba import njit, types
from numba.extending import overload

__all__ = ["FASTMATH", "REORDER", "chord", "curvature", "primitive", "sigma", "slope"]

# fused multiply-add, but nothing that reorders (results must not depend on how a loop was cut into vectors) and
# nothing that forgets NaN and infinity (a solve must see them)
FASTMATH = {"contract", "nsz"}
REORDER = FASTMATH | {"reassoc"}  # for inner products, whose last bits may depend on vectors

f32 = np.float32
# tanh x ≈ x P(s)/Q(s), s = x², a minimax fit on |x| ≤ 9, Q with leading coefficient 1. Beyond, s stays at 81, and the
# value, which grows with x, is held at ±1.
_LIMIT32 = f32(81)
_P32 = tuple(map(f32, (0.017172927, 26.5015907, 4495.04541, 172069.328, 1285920.38)))
_Q32 = tuple(map(f32, (422.506042, 33275.7305, 600709.25, 1285920.38)))

# tanh u = u + u³ P(u²)/Q(u²) on |u| ≤ 0.625 (Cephes), Q with leading coefficient 1
_LIMIT64 = 20.0
_P64 = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_Q64 = (1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)

# log(1 + a) = 2 artanh r = Σ 2/(2k + 1) r^(2k+1) with r = a/(2 + a), |r| ≤ 1/3
_LOG32 = tuple(f32(2 / (2 * k + 1)) for k in reversed(range(8)))
_LOG64 = tuple(2 / (2 * k + 1) for k in reversed(range(17)))


# Polynomials are written out: a loop over coefficients inside the kernels' loop would end vectorization.


@njit(inline="always", fastmath=FASTMATH)
def _tanh32(x):
    p0, p1, p2, p3, p4 = _P32
    q0, q1, q2, q3 = _Q32
    s = x * x
    s = _LIMIT32 if s > _LIMIT32 else s
    p = (((p0 * s + p1) * s + p2) * s + p3) * s + p4
    t = x * p / ((((s + q0) * s + q1) * s + q2) * s + q3)
    t = f32(1) if t > f32(1) else t
    return f32(-1) if t < f32(-1) else t


@njit(inline="always", fastmath=FASTMATH)
def _tanh64(x):
    p0, p1, p2 = _P64
    q0, q1, q2 = _Q64
    c = _LIMIT64 if x > _LIMIT64 else x
    c = -_LIMIT64 if c < -_LIMIT64 else c
    u = c * 0.03125
    s = u * u
    a = u + u * s * ((p0 * s + p1) * s + p2) / (((s + q0) * s + q1) * s + q2)
    # five times tanh 2u = 2ab/(a² + b²): all terms positive, so the relative error does not grow
    b = 1.0 + a * a
    a = a + a
    a, b = 2 * a * b, a * a + b * b
    a, b = 2 * a * b, a * a + b * b
    a, b = 2 * a * b, a * a + b * b
    a, b = 2 * a * b, a * a + b * b
    return a / b


@njit(inline="always", fastmath=FASTMATH)
def _log1p32(a):
    c0, c1, c2, c3, c4, c5, c6, c7 = _LOG32
    r = a / (f32(2) + a)
    s = r * r
    return r * (((((((c0 * s + c1) * s + c2) * s + c3) * s + c4) * s + c5) * s + c6) * s + c7)


@njit(inline="always", fastmath=FASTMATH)
def _log1p64(a):
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16 = _LOG64
    r = a / (2.0 + a)
    s = r * r
    high = (((((((c0 * s + c1) * s + c2) * s + c3) * s + c4) * s + c5) * s + c6) * s + c7) * s + c8
    return r * ((((((((high * s + c9) * s + c10) * s + c11) * s + c12) * s + c13) * s + c14) * s + c15) * s + c16)


@njit(inline="always", fastmath=FASTMATH)
def _log_cosh_argument(v, t):
    # |v| - log(1 + |t|) with t = tanh v, and -½ log(1 - t²) where that would cancel
    near = v * v < f32(0.25)
    return -t * t if near else (-t if t < f32(0) else t)


@njit(inline="always", fastmath=FASTMATH)
def _log_cosh_result(v, log):
    size = -v if v < f32(0) else v
    return -f32(0.5) * log if v * v < f32(0.25) else size - log


def _tanh(x): ...


def _primitive(v, t): ...


@overload(_tanh, inline="always", jit_options={"fastmath": FASTMATH})
def _(x):
    return (lambda x: _tanh32(x)) if x == types.float32 else (lambda x: _tanh64(x))


@overload(_primitive, inline="always", jit_options={"fastmath": FASTMATH})
def _(v, t):
    if v == types.float32:
        return lambda v, t: _log_cosh_result(v, _log1p32(_log_cosh_argument(v, t)))
    return lambda v, t: _log_cosh_result(v, _log1p64(_log_cosh_argument(v, t)))


@njit(inline="always", fastmath=FASTMATH)
def sigma(v, linear):
    """σ(v)."""
    return v if linear else _tanh(v)


@njit(inline="always", fastmath=FASTMATH)
def slope(s, linear):
    """σ'(v) as a function of s = σ(v)."""
    return f32(1) if linear else f32(1) - s * s


@njit(inline="always", fastmath=FASTMATH)
def curvature(s, linear):
    """σ''(v) as a function of s = σ(v)."""
    return f32(0) if linear else f32(-2) * s * (f32(1) - s * s)


@njit(inline="always", fastmath=FASTMATH)
def chord(v, s, linear):
    """σ(v)/v as a function of v and s = σ(v), 1 where v is tiny and s may have lost digits."""
    return f32(1) if linear or v * v < f32(1e-36) else s / v


@njit(inline="always", fastmath=FASTMATH)
def primitive(v, s, linear):
    """∫₀ᵛσ as a function of v and s = σ(v)."""
    return f32(0.5) * v * v if linear else _primitive(v, s)
