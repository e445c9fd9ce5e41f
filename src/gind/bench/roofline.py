"""How near the flux comes to what the machine can do.

| limit | measured as |
| --- | --- |
| bandwidth | a ← b and a ← b + s c on arrays of 128 MiB: 2 and 3 transfers of 4 bytes per element |
| sgemm | a product of square matrices, 2 n³ operations |
| tanh | the kernels' own tanh on 8 KiB, elements per second of one core |
| edge | the flux of many edges between 16 nodes, all in the first cache, elements per second of one core |

The flux of m edges in h channels is m h such elements. Its least traffic is y read once, the result written once, and
the list of edges; without any cache each edge would also fetch a row of y and fetch and store one of the result.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gind.bench.interleave import Contender, interleave
from gind.bench.loops import tanh_loop
from gind.bench.schema import FluxRate, Peaks
from gind.graph import Graph, diffuse
from gind.kernels import flux
from gind.kernels.threads import threads

__all__ = ["SMALL", "USUAL", "Sizes", "fractions", "measure", "threads"]

_WIDTH, _ROWS = 128, 16


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How large the problems are."""

    elements: int = 2**25
    """of the arrays whose transfer is measured: far more than any cache holds"""
    matrix: int = 2048
    times: int = 2000
    """repetitions of the loops in the first cache"""


USUAL, SMALL = Sizes(), Sizes(2**18, 128, 50)


def measure(
    flows: Sequence[tuple[Graph, int]], rounds: int, count: int, sizes: Sizes = USUAL
) -> tuple[Peaks, list[FluxRate]]:
    """What the machine can do, and what the flux does on each graph with its channels; all in turn."""
    work = {**_limits(sizes, count), **{str(i): _flux(*flow) for i, flow in enumerate(flows)}}
    contenders = [Contender(name, run, kernels=within) for name, (run, _, within) in work.items()]
    best = dict(zip(work, interleave(contenders, rounds).best, strict=True))
    rates = {name: amount / best[name] for name, (_, amount, _) in work.items()}
    peaks: Peaks = {
        "copy": rates["copy"],
        "triad": rates["triad"],
        "triad_one_thread": rates["triad_one_thread"],
        "sgemm": rates["sgemm"],
        "tanh": rates["tanh"],
        "edge": rates["edge"],
    }
    return peaks, [fractions(graph, h, best[str(i)], peaks) for i, (graph, h) in enumerate(flows)]


def fractions(graph: Graph, channels: int, seconds: float, peaks: Peaks) -> FluxRate:
    """A time of the flux on one thread, against the limits of one thread."""
    rate = graph.num_edges * channels / seconds
    weights = 0 if graph.weight is None else 4 * graph.num_edges
    least = 4 * 2 * graph.num_nodes * channels + 8 * (graph.num_edges + graph.num_nodes + 1) + weights
    uncached = least + 4 * 3 * graph.num_edges * channels
    return {
        "seconds": seconds,
        "rate": rate,
        "of_tanh": rate / peaks["tanh"],
        "of_compute": rate / peaks["edge"],
        "of_bandwidth": least / seconds / peaks["triad_one_thread"],
        "of_bandwidth_uncached": uncached / seconds / peaks["triad_one_thread"],
    }


Work = tuple[Callable[[Any], Sequence[Tensor]], float, Callable[[], contextlib.AbstractContextManager[Any]]]


def _limits(sizes: Sizes, count: int) -> dict[str, Work]:
    """Name → what to run, how much that is, and with how many threads."""
    a, b, c = (torch.ones(sizes.elements) for _ in range(3))
    left, right, product = (torch.ones(sizes.matrix, sizes.matrix) for _ in range(3))
    x, tanh = np.ones(2048, np.float32), tanh_loop()
    edges = 32 * sizes.times

    def every() -> contextlib.AbstractContextManager[None]:
        return threads(count)

    return {
        "copy": (lambda _: (a.copy_(b),), 2 * 4 * sizes.elements, every),
        "triad": (lambda _: (torch.add(b, c, alpha=2, out=a),), 3 * 4 * sizes.elements, every),
        "triad_one_thread": (lambda _: (torch.add(b, c, alpha=2, out=a),), 3 * 4 * sizes.elements, _one),
        "sgemm": (lambda _: (torch.mm(left, right, out=product),), 2 * sizes.matrix**3, every),
        "tanh": (lambda _: tanh(x, sizes.times) or (), len(x) * sizes.times, _one),
        "edge": (_near(edges), float(edges * _WIDTH), _one),
    }


def _near(edges: int) -> Callable[[Any], Sequence[Tensor]]:
    """The flux of so many edges from each of a few nodes to the others: it never waits for memory."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randn(_ROWS, _WIDTH, generator=generator)
    head = torch.randint(_ROWS, (edges,), generator=generator)
    ptr = torch.linspace(0, edges, _ROWS + 1, dtype=torch.float64).long()
    tail = torch.repeat_interleave(torch.arange(_ROWS), ptr.diff())
    nothing = torch.empty(0, dtype=torch.long)

    def run(_: Any) -> Sequence[Tensor]:
        return (flux(y, tail, head, ptr, y.new_empty(0), nothing)[0],)

    return run


def _flux(graph: Graph, channels: int) -> Work:
    y = torch.randn(graph.num_nodes, channels, generator=torch.Generator().manual_seed(0))

    def run(_: Any) -> Sequence[Tensor]:
        with torch.no_grad():
            return (diffuse(y, graph),)

    return run, float(graph.num_edges * channels), _one


def _one() -> contextlib.AbstractContextManager[None]:
    return threads(1)
