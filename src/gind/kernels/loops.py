"""The loops of the fused operators, compiled by numba: one node after another, its edges, a block of channels.

What varies between kernels (`order`, `linear`) is a constant of the closure, folded at compile time. Compiled code is
kept on disk under the name given to `compile_as`. Numba notices changes of this file, but not of the files it imports:
their checksum is part of the name.
"""

import functools
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba import njit, prange

from gind.kernels import prefetch as prefetching
from gind.kernels import scalar
from gind.kernels.prefetch import prefetch
from gind.kernels.scalar import FASTMATH, REORDER, chord, curvature, primitive, sigma, slope
from gind.kernels.untyped import config

__all__ = [
    "Kernel",
    "checksum",
    "compile_as",
    "compile_kernel",
    "flux_vjp",
    "kept_in",
    "moments",
    "scatter",
    "start_threads",
]

if config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT is set")

Kernel = Callable[..., Any]


def checksum(*modules: ModuleType) -> int:
    """Tells versions of these files apart."""
    return zlib.crc32(b"".join(Path(str(module.__file__)).read_bytes() for module in modules))


_CHECKSUM = checksum(scalar, prefetching)
_AHEAD = 4  # edges: about as long as memory takes to answer
_LINE = 16  # channels: a cache line of float32


@njit(parallel=True, cache=True)  # raises on import where compiled code cannot be kept: then the reference runs
def start_threads(x):
    """Start numba's threads, so that it is known which kind they are."""
    for i in prange(len(x)):
        x[i] = i


def kept_in() -> str:
    """The directory where compiled code is kept: NUMBA_CACHE_DIR, beside this file, or the user's cache."""
    return str(start_threads.stats.cache_path)


@njit(inline="always")
def hint(y, out, row, first, last):
    """Ask for the parts of two rows that a coming edge will use."""
    for c in range(first, last, _LINE):
        prefetch(y, row, c)
        prefetch(out, row, c)


def compile_as(name: str, function: Any, *, parallel: bool, reorder: bool = False) -> Kernel:
    """Serial code for small problems: it compiles faster and never waits for other threads.

    `reorder`: sums may be taken in any order, so that inner products are vectorized.
    """
    function.__qualname__ = name
    fastmath = REORDER if reorder else FASTMATH
    compiled: Kernel = njit(parallel=parallel, nogil=True, cache=True, fastmath=fastmath, error_model="numpy")(function)
    return compiled


def compile_kernel(function: Any, parallel: bool, name: str, *, reorder: bool = False) -> Kernel:
    """`compile_as` a name of its own for serial code, for parallel code, and for each version of what it may call."""
    own = f"{name}_{'reorder_' if reorder else ''}{'parallel' if parallel else 'serial'}_{_CHECKSUM:08x}"
    return compile_as(own, function, parallel=parallel, reorder=reorder)


@functools.cache
def scatter(order: int, linear: bool, parallel: bool) -> Kernel:
    """An edge moves σ(v) (order 0), σ'(v) dt (1), σ''(v) dt du (2) or σ(v)/v dt (3) from its tail to its head.

    Edges whose tail is `idle` (a flag per node, or empty) move nothing.
    """

    def kernel(y, t, u, ptr, head, weight, idle, out, block):
        nodes, channels = y.shape
        weighted, resting = len(weight) > 0, len(idle) > 0
        for b in prange((channels + block - 1) // block):
            first = b * block
            last = min(channels, first + block)
            width = last - first
            here = np.empty(width, y.dtype)
            out[:, first:last] = 0
            for i in range(nodes):
                if ptr[i] == ptr[i + 1] or (resting and idle[i]):
                    continue
                yi, ti, ui = y[i, first:last], t[i, first:last], u[i, first:last]
                here[:] = 0
                for e in range(ptr[i], ptr[i + 1]):
                    j = head[e]
                    hint(y, out, head[min(e + _AHEAD, len(head) - 1)], first, last)
                    yj, tj, uj, there = (
                        y[j, first:last],
                        t[j, first:last],
                        u[j, first:last],
                        out[j, first:last],
                    )
                    w = weight[e] if weighted else y.dtype.type(1)
                    for c in range(width):
                        v = yj[c] - yi[c]
                        s = sigma(v, linear)
                        if order == 0:
                            q = w * s
                        elif order == 1:
                            q = w * slope(s, linear) * (tj[c] - ti[c])
                        elif order == 2:
                            q = w * curvature(s, linear) * (tj[c] - ti[c]) * (uj[c] - ui[c])
                        else:
                            q = w * chord(v, s, linear) * (tj[c] - ti[c])
                        there[c] += q
                        here[c] -= q
                out[i, first:last] += here

    return compile_kernel(kernel, parallel, f"scatter_{order}_{linear}")


@functools.cache
def moments(linear: bool, integral: bool, parallel: bool) -> Kernel:
    """The flux, with Σwσ, Σwσ² and (`integral`) Σwσ̃ per graph and channel."""

    def kernel(y, ptr, head, weight, batch, out, sums, block):
        nodes, channels = y.shape
        weighted, batched = len(weight) > 0, len(batch) > 0
        for b in prange((channels + block - 1) // block):
            first = b * block
            last = min(channels, first + block)
            width = last - first
            here = np.empty(width, y.dtype)
            # a node's own sums in y's precision, the sums over nodes in float64
            m1, m2 = np.empty(width, y.dtype), np.empty(width, y.dtype)
            out[:, first:last] = 0
            sums[:, :, first:last] = 0
            for i in range(nodes):
                if ptr[i] == ptr[i + 1]:
                    continue
                yi = y[i, first:last]
                here[:] = 0
                m1[:] = 0
                m2[:] = 0
                for e in range(ptr[i], ptr[i + 1]):
                    j = head[e]
                    hint(y, out, head[min(e + _AHEAD, len(head) - 1)], first, last)
                    yj, there = y[j, first:last], out[j, first:last]
                    w = weight[e] if weighted else y.dtype.type(1)
                    for c in range(width):
                        v = yj[c] - yi[c]
                        s = sigma(v, linear)
                        q = w * s
                        there[c] += q
                        here[c] -= q
                        m1[c] += q * s
                        if integral:
                            m2[c] += w * primitive(v, s, linear)
                out[i, first:last] += here
                g = batch[i] if batched else 0
                for c in range(width):
                    sums[0, g, first + c] -= here[c]  # what left the node
                    sums[1, g, first + c] += m1[c]
                    sums[2, g, first + c] += m2[c]

    return compile_kernel(kernel, parallel, f"moments_{linear}_{integral}")


@functools.cache
def flux_vjp(linear: bool, parallel: bool) -> Kernel:
    """An edge moves (dt + c₀ + 2c₁σ)σ' + c₂σ, c the cotangents of the moments of its graph."""

    def kernel(y, t, cotangent, ptr, head, weight, batch, out, block):
        nodes, channels = y.shape
        weighted, batched = len(weight) > 0, len(batch) > 0
        for b in prange((channels + block - 1) // block):
            first = b * block
            last = min(channels, first + block)
            width = last - first
            here = np.empty(width, y.dtype)
            out[:, first:last] = 0
            for i in range(nodes):
                if ptr[i] == ptr[i + 1]:
                    continue
                yi, ti = y[i, first:last], t[i, first:last]
                g = batch[i] if batched else 0
                c0, c1, c2 = (
                    cotangent[0, g, first:last],
                    cotangent[1, g, first:last],
                    cotangent[2, g, first:last],
                )
                here[:] = 0
                for e in range(ptr[i], ptr[i + 1]):
                    j = head[e]
                    hint(y, out, head[min(e + _AHEAD, len(head) - 1)], first, last)
                    yj, tj, there = y[j, first:last], t[j, first:last], out[j, first:last]
                    w = weight[e] if weighted else y.dtype.type(1)
                    for c in range(width):
                        s = sigma(yj[c] - yi[c], linear)
                        pushed = tj[c] - ti[c] + c0[c] + (c1[c] + c1[c]) * s
                        q = w * (pushed * slope(s, linear) + c2[c] * s)
                        there[c] += q
                        here[c] -= q
                out[i, first:last] += here

    return compile_kernel(kernel, parallel, f"flux_vjp_{linear}")
