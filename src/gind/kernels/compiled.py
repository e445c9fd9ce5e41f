"""The fused operators on the CPU, in C: each edge visited once per block of channels, no edge tensor stored.

As in `gind.kernels.cpu` threads share out the channels, so the result is bit for bit the same for every number of
threads.
"""

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import torch
from torch import Tensor

from gind.kernels.native.build import library

__all__ = ["flux", "flux_curve", "flux_jvp", "flux_secant", "flux_vjp"]

Edges = tuple[Tensor, Tensor, Tensor]  # ptr, head, weight: edges sorted by tail, `weight` empty if all are 1
_LINE = 16  # channels: a cache line of float32; narrower shares would share lines between threads
_SMALL = 2**17  # edges x channels: below this, waking threads costs more than the work
_PRECISION = {torch.float32: "float32", torch.float64: "float64"}
_library = library()


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
        return _scatter("flux", activation, y, y, y, edges), y.new_empty(0, dtype=torch.float64)
    out, sums = torch.empty_like(y), y.new_empty((3, num_graphs, y.shape[1]), dtype=torch.float64)
    name = "moments" if primitive else "spread"
    _run(f"{name}_{activation}", y, (y, *edges, batch, out, sums), (*y.shape, num_graphs), edges)
    return out, sums


def flux_jvp(y: Tensor, t: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_jvp`."""
    return _scatter("flux_jvp", activation, y, t, t, edges)


def flux_curve(y: Tensor, t: Tensor, u: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_curve`."""
    return _scatter("flux_curve", activation, y, t, u, edges)


def flux_secant(y: Tensor, t: Tensor, edges: Edges, activation: str) -> Tensor:
    """See `reference.flux_secant`."""
    return _scatter("flux_secant", activation, y, t, t, edges)


def flux_vjp(y: Tensor, t: Tensor, cotangent: Tensor, edges: Edges, batch: Tensor, activation: str) -> Tensor:
    """See `reference.flux_vjp`."""
    out, cotangent = torch.empty_like(y), cotangent.to(y.dtype).contiguous()
    tensors = (y, t, cotangent, *edges, batch, out)
    name = "flux_vjp" if len(cotangent) == 3 else "spread_vjp"
    _run(f"{name}_{activation}", y, tensors, (*y.shape, cotangent.shape[1]), edges)
    return out


def _scatter(name: str, activation: str, y: Tensor, t: Tensor, u: Tensor, edges: Edges) -> Tensor:
    out = torch.empty_like(y)
    _run(f"{name}_{activation}", y, (y, t, u, *edges, out), tuple(y.shape), edges)
    return out


def _run(name: str, y: Tensor, tensors: Sequence[Tensor], sizes: Sequence[int], edges: Edges) -> None:
    """Call a function of the library with pointers (an empty tensor is a null one), sizes and a range of channels."""
    function = _function(f"{name}_{_PRECISION[y.dtype]}")
    arguments = [_pointer(tensor) for tensor in tensors] + [ctypes.c_int64(size) for size in sizes]
    channels = y.shape[1]
    threads = min(torch.get_num_threads(), -(-channels // _LINE))
    if threads <= 1 or len(edges[1]) * channels < _SMALL:
        function(*arguments, ctypes.c_int64(0), ctypes.c_int64(channels))
        return
    share = -(-channels // threads // _LINE) * _LINE
    ranges = [(start, min(start + share, channels)) for start in range(0, channels, share)]

    def part(bounds: tuple[int, int]) -> None:
        function(*arguments, *map(ctypes.c_int64, bounds))

    others = [_pool(threads - 1).submit(part, bounds) for bounds in ranges[1:]]
    part(ranges[0])
    wait(others)


def _pointer(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr() if tensor.numel() else None)


_functions: dict[str, Callable[..., None]] = {}
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def _function(name: str) -> Callable[..., None]:
    if name not in _functions:
        function: Any = getattr(_library, name)
        function.restype = None
        _functions[name] = function
    return _functions[name]


def _pool(size: int) -> ThreadPoolExecutor:
    """Threads of this process: a forked child has none of its parent's."""
    key = (os.getpid(), size)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(size, thread_name_prefix="gind")
    return _pools[key]
