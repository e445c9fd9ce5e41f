"""The fused layer against the same layer on edge-storing kernels: time as interleaved ratios, and peak memory.

Each round times the reference first and the fused layer second, so that both see the same machine; `ratio` is best
against best.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gind import Diffusion, Graph
from gind.bench import SHAPES, Shape, make_graph, peak_bytes, reference_kernels
from gind.bench.layer import make_layer
from gind.kernels.allocator import keep_memory

LARGE = Shape(1_000_000, 5_000_000)


def make_problem(shape: Shape) -> tuple[Diffusion, torch.Tensor, Graph]:
    graph = make_graph(shape)
    return *make_layer(graph, shape.channels), graph


def compare(benchmark: Any, run: Callable[[], object], rounds: int) -> None:
    keep_memory()
    reference: list[float] = []

    def setup() -> None:
        with reference_kernels():
            start = time.perf_counter()
            run()
            reference.append(time.perf_counter() - start)

    run()
    benchmark.pedantic(run, setup=setup, rounds=rounds)
    ratio = min(reference) / benchmark.stats.stats.min
    benchmark.extra_info["ratio"] = ratio
    print(
        f"\n{benchmark.name}: reference {1e3 * min(reference):.2f} ms, fused {1e3 * benchmark.stats.stats.min:.2f} ms, "
        f"ratio {ratio:.1f}"
    )


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.benchmark(group="one iteration without gradient")
def test_iteration(benchmark: Any, name: str) -> None:
    layer, b, graph = make_problem(SHAPES[name])
    with torch.no_grad():
        fn = layer.bind(b, graph)
        compare(benchmark, functools.partial(fn, torch.randn_like(b)), rounds=30)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.benchmark(group="solve to 1e-4 and implicit gradient")
def test_solve_and_backward(benchmark: Any, name: str) -> None:
    layer, b, graph = make_problem(SHAPES[name])
    b.requires_grad_()

    def run() -> None:
        layer(b, graph).square().sum().backward()

    compare(benchmark, run, rounds=5)


def measured_peak(benchmark: Any, make: Callable[[], Callable[[], object]]) -> int:
    return benchmark.pedantic(peak_bytes, (make,)) or 0


def iteration(shape: Shape) -> Callable[[], object]:
    layer, b, graph = make_problem(shape)
    with torch.no_grad():
        fn, z = layer.bind(b, graph), torch.randn_like(b)
        fn(z)

    def run() -> object:
        with torch.no_grad():
            return fn(z)

    return run


def solve(shape: Shape) -> Callable[[], object]:
    layer, b, graph = make_problem(shape)
    with torch.no_grad():
        layer(b[:, : shape.channels], graph)

    def run() -> object:
        with torch.no_grad():
            return layer(b, graph)

    return run


def iteration_on_reference(shape: Shape) -> Callable[[], object]:
    run = iteration(shape)

    def run_reference() -> object:
        with reference_kernels():
            return run()

    return run_reference


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.benchmark(group="peak memory")
def test_memory(benchmark: Any, name: str) -> None:
    shape = SHAPES[name]
    unit = 4 * shape.nodes * shape.channels
    stored = 4 * shape.edges * shape.channels
    makers = {"iteration": iteration, "solve": solve, "iteration on reference": iteration_on_reference}
    peaks = {
        key: measured_peak(benchmark, functools.partial(make, shape))
        if key == "iteration"
        else peak_bytes(functools.partial(make, shape)) or 0
        for key, make in makers.items()
    }
    benchmark.extra_info.update(peaks)
    report = ", ".join(f"{key} {peak / unit:.1f} n·h = {peak / stored:.2f} m·h" for key, peak in peaks.items())
    print(f"\n{name}: peak above the inputs, in floats: {report}")


@pytest.mark.benchmark(group="1,000,000 nodes, 5,000,000 edges, 64 channels")
def test_large(benchmark: Any) -> None:
    peak = measured_peak(benchmark, functools.partial(solve_large, LARGE))
    benchmark.extra_info["peak"] = peak
    print(f"\nlarge: peak of a solve above the inputs {peak / 2**30:.2f} GiB")


def solve_large(shape: Shape) -> Callable[[], object]:
    layer, b, graph = make_problem(shape)

    def run() -> object:
        start = time.perf_counter()
        with torch.no_grad():
            _, solution = layer(b, graph, return_solution=True)
        print(f"\n{solution} {time.perf_counter() - start:.1f} s for the solve")
        return solution

    return run
