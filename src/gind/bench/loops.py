"""What one core can do: tanh alone, in the first cache.

Not kept on disk: numba would not notice that tanh has changed.
"""

import functools
from collections.abc import Callable
from typing import Any

from numba import njit

from gind.kernels.scalar import FASTMATH, sigma

__all__ = ["tanh_loop"]

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
