"""Loops that measure what one core can do: tanh alone, and the arithmetic of an edge, on rows in the first cache.

They are not kept on disk: numba would not notice that tanh has changed.
"""

import functools
from collections.abc import Callable
from typing import Any

from numba import njit

from gind.kernels.scalar import FASTMATH, sigma

__all__ = ["edge_loop", "tanh_loop"]

_compile = njit(fastmath=FASTMATH, error_model="numpy", nogil=True)


@functools.cache
def tanh_loop() -> Callable[..., Any]:
    """x ← tanh x, `times` times."""

    @_compile
    def loop(x, times):
        for _ in range(times):
            for c in range(len(x)):
                x[c] = sigma(x[c], False)

    return loop


@functools.cache
def edge_loop() -> Callable[..., Any]:
    """What the flux does for an edge, v = y_j - y_i, q = tanh v, out_j += q, here -= q, over rows that stay near."""

    @_compile
    def loop(y, out, here, times):
        yi = y[0]
        for e in range(times):
            j = e % len(y)
            yj, there = y[j], out[j]
            for c in range(len(here)):
                q = sigma(yj[c] - yi[c], False)
                there[c] += q
                here[c] -= q

    return loop
