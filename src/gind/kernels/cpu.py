"""The fused operators on the CPU (numba): each edge visited once per block of channels, no edge tensor stored.

Threads share out the channels, not the edges: a thread owns its columns of the result, so adding an edge's amount
at its head and taking it from its tail needs no lock, σ is computed once per edge, and the result is bit for bit
the same for every number of threads.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from gind.kernels import reference
from gind.kernels.scalar import FASTMATH, chord, curvature, primitive, sigma, slope

__all__ = ["flux", "flux_curve", "flux_jvp", "flux_secant", "moments_vjp", "secant_curve"]

Edges = tuple[Tensor, Tensor, Tensor]  # ptr, head, weight: edges sorted by tail, `weight` empty if all are 1
Array = np.ndarray[Any, Any]
_LINE = 16  # channels: a cache line of float32; narrower blocks would share lines between threads
_BLOCK = 64  # channels: wide enough to hide the index arithmetic, narrow enough for the cache
_workqueue = threading.Lock()  # numba's "workqueue" pool aborts the process on concurrent calls


def flux(
    y: Tensor, edges: Edges, batch: Tensor, num_graphs: int, activation: str, moments: bool
) -> tuple[Tensor, Tensor]:
    """See `reference.flux`."""
    if not moments:
        return _scatter(0, activation, y, y, y, edges), y.new_empty(0, dtype=torch.float64)
    out, sums = torch.empty_like(y), y.new_empty((3, num_graphs, y.shape[1]), dtype=torch.float64)
    arrays = [a.numpy() for a in (y, *edges, batch, out, sums)]
    _run(_moments_kernel(activation == "identity"), y.shape[1], arrays)
    return out, sums


def flux_jvp(y: Tensor, t: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_jvp`."""
    return _scatter(1, activation, y, t, t, edges)


def flux_secant(y: Tensor, t: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_secant`."""
    return _scatter(3, activation, y, t, t, edges)


def flux_curve(y: Tensor, t: Tensor, u: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_curve`."""
    return _scatter(2, activation, y, t, u, edges)


def secant_curve(y: Tensor, t: Tensor, u: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.secant_curve`: only needed to differentiate through the steps of a Newton solve."""
    ptr, head, weight = edges
    tail = torch.repeat_interleave(torch.arange(len(ptr) - 1), ptr.diff())
    return reference.secant_curve(y, t, u, (tail, head, weight), activation)


def moments_vjp(y: Tensor, cotangent: Tensor, edges: Edges, batch: Tensor, activation: str) -> Tensor:
    """See `reference.moments_vjp`."""
    out = torch.empty_like(y)
    arrays = [a.numpy() for a in (y, cotangent.to(y.dtype).contiguous(), *edges, batch, out)]
    _run(_moments_vjp_kernel(activation == "identity"), y.shape[1], arrays)
    return out


def _scatter(order: int, activation: str, y: Tensor, t: Tensor, u: Tensor, edges: Edges) -> Tensor:
    out = torch.empty_like(y)
    arrays = [a.numpy() for a in (y, t, u, *edges, out)]
    _run(_scatter_kernel(order, activation == "identity"), y.shape[1], arrays)
    return out


def _run(kernel: Callable[..., None], channels: int, arrays: list[Array]) -> None:
    """Call the kernel with as many threads as torch would use, and blocks that keep them all busy."""
    threads = max(1, min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    share = -(-channels // threads)
    block = min(_BLOCK, max(_LINE, -(-share // _LINE) * _LINE))
    numba.set_num_threads(threads)
    if _is_workqueue():
        with _workqueue:
            kernel(*arrays, block)
    else:
        kernel(*arrays, block)


@functools.cache
def _is_workqueue() -> bool:
    _start_threads(np.zeros(2))
    return bool(numba.threading_layer() == "workqueue")  # type: ignore[attr-defined]


@njit(parallel=True, cache=True)  # raises on import where compiled code cannot be kept: then the reference runs
def _start_threads(x: Array) -> None:
    for i in prange(len(x)):
        x[i] = i


# The kernels. What varies between them (`linear`, `order`) is a constant of the closure: folded at compile time, and
# part of the key under which numba keeps the compiled code. Change scalar.py, and this file must be touched too.


@functools.cache
def _scatter_kernel(order: int, linear: bool) -> Callable[..., None]:
    """An edge moves σ(v) (order 0), σ'(v) dt (1), σ''(v) dt du (2) or σ(v)/v dt (3) from its tail to its head."""

    @njit(parallel=True, nogil=True, cache=True, fastmath=FASTMATH)
    def kernel(y, t, u, ptr, head, weight, out, block):  # type: ignore[no-untyped-def]
        nodes, channels = y.shape
        weighted = len(weight) > 0
        for b in prange((channels + block - 1) // block):
            first = b * block
            last = min(channels, first + block)
            width = last - first
            here = np.empty(width, y.dtype)
            out[:, first:last] = 0
            for i in range(nodes):
                if ptr[i] == ptr[i + 1]:
                    continue
                yi, ti, ui = y[i, first:last], t[i, first:last], u[i, first:last]
                here[:] = 0
                for e in range(ptr[i], ptr[i + 1]):
                    j = head[e]
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
                            q = w * chord(v, s) * (tj[c] - ti[c])
                        there[c] += q
                        here[c] -= q
                out[i, first:last] += here

    return kernel


@functools.cache
def _moments_kernel(linear: bool) -> Callable[..., None]:
    @njit(parallel=True, nogil=True, cache=True, fastmath=FASTMATH)
    def kernel(y, ptr, head, weight, batch, out, sums, block):  # type: ignore[no-untyped-def]
        nodes, channels = y.shape
        weighted, batched = len(weight) > 0, len(batch) > 0
        for b in prange((channels + block - 1) // block):
            first = b * block
            last = min(channels, first + block)
            width = last - first
            here = np.empty(width, y.dtype)
            # a node's own sums in y's precision, the sums over nodes in float64
            m0, m1, m2 = np.empty(width, y.dtype), np.empty(width, y.dtype), np.empty(width, y.dtype)
            out[:, first:last] = 0
            sums[:, :, first:last] = 0
            for i in range(nodes):
                if ptr[i] == ptr[i + 1]:
                    continue
                yi = y[i, first:last]
                here[:] = 0
                m0[:] = 0
                m1[:] = 0
                m2[:] = 0
                for e in range(ptr[i], ptr[i + 1]):
                    j = head[e]
                    yj, there = y[j, first:last], out[j, first:last]
                    w = weight[e] if weighted else y.dtype.type(1)
                    for c in range(width):
                        v = yj[c] - yi[c]
                        s = sigma(v, linear)
                        q = w * s
                        there[c] += q
                        here[c] -= q
                        m0[c] += q
                        m1[c] += q * s
                        m2[c] += w * primitive(v, s, linear)
                out[i, first:last] += here
                g = batch[i] if batched else 0
                for c in range(width):
                    sums[0, g, first + c] += m0[c]
                    sums[1, g, first + c] += m1[c]
                    sums[2, g, first + c] += m2[c]

    return kernel


@functools.cache
def _moments_vjp_kernel(linear: bool) -> Callable[..., None]:
    @njit(parallel=True, nogil=True, cache=True, fastmath=FASTMATH)
    def kernel(y, cotangent, ptr, head, weight, batch, out, block):  # type: ignore[no-untyped-def]
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
                yi = y[i, first:last]
                g = batch[i] if batched else 0
                c0, c1, c2 = (
                    cotangent[0, g, first:last],
                    cotangent[1, g, first:last],
                    cotangent[2, g, first:last],
                )
                here[:] = 0
                for e in range(ptr[i], ptr[i + 1]):
                    j = head[e]
                    yj, there = y[j, first:last], out[j, first:last]
                    w = weight[e] if weighted else y.dtype.type(1)
                    for c in range(width):
                        s = sigma(yj[c] - yi[c], linear)
                        q = w * ((c0[c] + (c1[c] + c1[c]) * s) * slope(s, linear) + c2[c] * s)
                        there[c] += q
                        here[c] -= q
                out[i, first:last] += here

    return kernel
