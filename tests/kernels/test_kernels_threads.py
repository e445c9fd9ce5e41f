"""Threads: the same bits for every number of them, and calls from many at once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from graphs import Raw, large_raw, values
from torch import Tensor

from gind.kernels import flux, flux_jvp, flux_secant, op

CHANNELS = (1, 16, 17, 33, 48, 64, 65, 70, 128, 130, 257)


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def everything(graph: Raw, channels: int, dtype: torch.dtype, activation: str) -> list[Tensor]:
    """Results of all operators."""
    y, t, u = (values(k, graph.num_nodes, channels, dtype=dtype) for k in range(3))
    c = values(3, 3, graph.num_graphs, channels, dtype=torch.float64)
    batch = graph.batch, graph.num_graphs, activation
    return [
        flux(y, *graph.edges, *batch)[0],
        *flux(y, *graph.edges, *batch, moments=True),
        flux_jvp(y, t, *graph.edges, activation),
        flux_secant(y, t, *graph.edges, activation),
        op._flux_curve(y, t, u, *graph.edges, activation),
        *flux(y, *graph.edges, *batch, moments=True, primitive=False),
        op._flux_vjp(y, t, c, *graph.edges, graph.batch, activation),
        op._flux_vjp(y, t, c[:2], *graph.edges, graph.batch, activation),
    ]


def assert_same_bits(actual: list[Tensor], expected: list[Tensor]) -> None:
    for a, e in zip(actual, expected, strict=True):
        assert torch.equal(a, e)


@pytest.mark.parametrize(
    ("dtype", "activation"),
    [(torch.float32, "tanh"), (torch.float64, "tanh"), (torch.float32, "identity")],
    ids=str,
)
@pytest.mark.parametrize("weighted", [True, False])
def test_number_of_threads_does_not_change_a_bit(dtype: torch.dtype, activation: str, weighted: bool) -> None:
    graph = large_raw(dtype)
    graph = graph if weighted else graph._replace(weight=graph.weight[:0])
    for channels in CHANNELS:
        torch.set_num_threads(1)
        expected = everything(graph, channels, dtype, activation)
        for threads in (2, 64):  # more than there are is the same as all
            torch.set_num_threads(threads)
            assert_same_bits(everything(graph, channels, dtype, activation), expected)


def test_concurrent_calls_do_not_disturb_each_other() -> None:
    graph = large_raw()
    expected = {channels: everything(graph, channels, torch.float64, "tanh") for channels in CHANNELS}
    jobs = list(CHANNELS) * 3
    with ThreadPoolExecutor(4, initializer=torch.set_num_threads, initargs=(2,)) as pool:
        results = pool.map(lambda channels: everything(graph, channels, torch.float64, "tanh"), jobs)
        for channels, actual in zip(jobs, results, strict=True):
            assert_same_bits(actual, expected[channels])


def test_works_beside_torch_in_other_threads() -> None:
    graph, stop, products = large_raw(), threading.Event(), []
    expected = everything(graph, 70, torch.float64, "tanh")
    a = values(0, 200, 200, dtype=torch.float64)

    def multiply() -> None:
        while not stop.is_set():
            products.append(float((a @ a).sum()))

    workers = [threading.Thread(target=multiply) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(20):
            assert_same_bits(everything(graph, 70, torch.float64, "tanh"), expected)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert products
    assert products == pytest.approx([float((a @ a).sum())] * len(products))
