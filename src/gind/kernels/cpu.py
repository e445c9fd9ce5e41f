"""The fused operators on the CPU (numba): each edge visited once per block of channels, no edge tensor stored.

Threads share out the channels, not the edges: a thread owns its columns of the result, so adding an edge's amount
at its head and taking it from its tail needs no lock, σ is computed once per edge, and the result is bit for bit
the same for every number of threads.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from numba.np.ufunc import threading_layer
from torch import Tensor

from gind.kernels import loops, reference
from gind.kernels.untyped import config

__all__ = ["flux", "flux_curve", "flux_jvp", "flux_secant", "flux_vjp", "run"]

Edges = tuple[Tensor, Tensor, Tensor]  # ptr, head, weight: edges sorted by tail, `weight` empty if all are 1
_LINE = 16  # channels: a cache line of float32; narrower blocks would share lines between threads
_BLOCK = 128  # channels: wide enough to hide the index arithmetic, narrow enough for the cache
_NOBODY = torch.empty(0, dtype=torch.bool)  # the nodes that rest
_SMALL = 2**16  # edges x channels: below this, starting threads costs more than the work


def flux(
    y: Tensor,
    edges: Edges,
    batch: Tensor,
    num_graphs: int,
    activation: str,
    moments: bool,
    primitive: bool = True,
) -> tuple[Tensor, Tensor]:
    """See `reference.flux`."""
    if not moments:
        return _scatter(0, activation, y, y, y, edges), y.new_empty(0, dtype=torch.float64)
    out, sums = torch.empty_like(y), y.new_empty((3, num_graphs, y.shape[1]), dtype=torch.float64)
    kernel = functools.partial(loops.moments, activation == "identity", primitive)
    run(kernel, y, edges, y, *edges, batch, out, sums)
    return out, sums


def flux_jvp(y: Tensor, t: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_jvp`."""
    return _scatter(1, activation, y, t, t, edges)


def flux_curve(y: Tensor, t: Tensor, u: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_curve`."""
    return _scatter(2, activation, y, t, u, edges)


def flux_secant(y: Tensor, t: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_secant`."""
    return _scatter(3, activation, y, t, t, edges)


def flux_vjp(y: Tensor, t: Tensor, cotangent: Tensor, edges: Edges, batch: Tensor, activation: str) -> Tensor:
    """See `reference.flux_vjp`."""
    out, cotangent = torch.empty_like(y), reference.all_three(cotangent).to(y.dtype).contiguous()
    kernel = functools.partial(loops.flux_vjp, activation == "identity")
    run(kernel, y, edges, y, t, cotangent, *edges, batch, out)
    return out


def _scatter(order: int, activation: str, y: Tensor, t: Tensor, u: Tensor, edges: Edges) -> Tensor:
    out = torch.empty_like(y)
    kernel = functools.partial(loops.scatter, order, activation == "identity")
    run(kernel, y, edges, y, t, u, *edges, _NOBODY, out)
    return out


def run(make: Callable[[bool], Callable[..., None]], y: Tensor, edges: Edges, *tensors: Tensor) -> None:
    """Call a kernel with as many threads as torch would use, and blocks of channels that keep them all busy."""
    arrays = [tensor.numpy() for tensor in tensors]
    channels, work = y.shape[1], len(edges[1]) * y.shape[1]
    threads = min(torch.get_num_threads(), config.NUMBA_NUM_THREADS)
    if threads <= 1 or channels <= _LINE or work < _SMALL or _forked():
        make(False)(*arrays, _BLOCK)
        return
    share = -(-channels // threads)
    block = min(_BLOCK, max(_LINE, -(-share // _LINE) * _LINE))
    with _starting:
        pool = _pool()
    with pool:
        numba.set_num_threads(threads)
        make(True)(*arrays, block)


_starting = threading.Lock()
_owner: list[int] = []  # the process that started numba's threads


def _forked() -> bool:
    """Whether this is a child of the process that started the threads: it has none, and using them would end it."""
    return bool(_owner) and _owner[0] != os.getpid()


@functools.cache
def _pool() -> contextlib.AbstractContextManager[Any]:
    """A lock around parallel calls where numba's thread pool is "workqueue", which dies of concurrent ones."""
    loops.start_threads(np.zeros(2))
    _owner.append(os.getpid())
    workqueue = threading_layer() == "workqueue"
    return threading.RLock() if workqueue else contextlib.nullcontext()
