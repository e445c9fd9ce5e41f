"""Attention sums against NumPy written out, numba against plain PyTorch, gradients against finite differences."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from graphs import MODEST, values
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close
from torch_geometric.nn import GATConv

from gind.baselines import attention
from gind.baselines.attention import Attention, attend, with_loops
from gind.graph import Graph
from gind.kernels import has_numba
from gind.kernels.threads import threads


@pytest.fixture(params=["fused", "reference"])
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test on the numba kernels, and on their plain PyTorch definition."""
    with contextlib.ExitStack() as stack:
        if request.param == "reference" and has_numba():
            for operator in (attention._attend, attention._attend_backward):
                stack.enter_context(operator.set_kernel_enabled("cpu", enabled=False))
        elif request.param == "fused" and not has_numba():
            pytest.skip("numba is not available")
        yield


def problem(counts: list[int], heads: int, channels: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """crow, source, alpha and x, with so many edges that end at each node."""
    crow = torch.tensor([0, *np.cumsum(counts).tolist()])
    edges, nodes = int(crow[-1]), len(counts)
    source = torch.from_numpy(np.random.default_rng(edges).integers(0, max(nodes, 1), edges))
    return (
        crow,
        source,
        values(1, edges, heads, dtype=dtype),
        values(2, nodes, heads * channels, dtype=dtype).view(nodes, heads, channels),
    )


def by_hand(crow: Tensor, source: Tensor, alpha: Tensor, x: Tensor) -> Tensor:
    out = np.zeros(x.shape)
    for i in range(len(x)):
        for e in range(int(crow[i]), int(crow[i + 1])):
            out[i] += alpha[e].numpy()[:, None] * x[int(source[e])].numpy()
    return torch.from_numpy(out)


@MODEST
@given(counts=st.lists(st.integers(0, 4), max_size=6), heads=st.integers(1, 3), channels=st.integers(1, 5))
def test_sums_are_those_of_numpy(counts: list[int], heads: int, channels: int) -> None:
    arguments = problem(counts, heads, channels)
    assert_close(attend(*arguments), by_hand(*arguments), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("heads", "channels"), [(1, 1), (3, 2), (9, 33)])
def test_gradients_are_those_of_finite_differences(heads: int, channels: int, kernels: None) -> None:
    crow, source, alpha, x = problem([2, 0, 3, 1], heads, channels)
    assert gradcheck(
        lambda a, b: attend(crow, source, a, b), (alpha.requires_grad_(), x.requires_grad_()), fast_mode=heads > 3
    )


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 1e-4), (torch.float64, 1e-12)], ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_many_edges_by_one_thread_and_by_two(dtype: torch.dtype, tol: float, count: int) -> None:
    crow, source, alpha, x = problem([7] * 400, 8, 32, dtype)
    alpha = alpha.t().contiguous().t()  # what comes in may lie in memory otherwise
    x = x.transpose(0, 1).contiguous().transpose(0, 1)
    cotangent = values(3, 400, 256, dtype=dtype).view(400, 8, 32)
    results = []
    for precision, fused in ((dtype, True), (torch.float64, False)):
        inputs = [tensor.detach().to(precision).requires_grad_() for tensor in (alpha, x)]
        with threads(count), contextlib.ExitStack() as stack:
            if not fused and has_numba():  # the oracle
                for operator in (attention._attend, attention._attend_backward):
                    stack.enter_context(operator.set_kernel_enabled("cpu", enabled=False))
            out = attend(crow, source, *inputs)
            results.append([out.detach(), *torch.autograd.grad(out, inputs, cotangent.to(precision))])
    assert_close(results[0], results[1], rtol=tol, atol=tol, check_dtype=False)


def test_operators_are_registered_as_torch_wants_them(kernels: None) -> None:
    crow, source, alpha, x = problem([2, 0, 3], 2, 3)
    torch.library.opcheck(attention._attend, (crow, source, alpha.requires_grad_(), x.requires_grad_()))
    grad = torch.ones_like(x)
    torch.library.opcheck(attention._attend_backward, (crow, source, alpha.detach(), x.detach(), grad))


def test_the_layer_is_that_of_pyg(kernels: None) -> None:
    edges = torch.tensor([[0, 1, 2, 4, 1], [1, 0, 3, 2, 4]])  # node 5 is alone
    graph = Graph.from_edge_index(edges, 6, directed=True)
    torch.manual_seed(0)
    ours, theirs = Attention(4, 3, 2).double(), GATConv(4, 3, 2).double()
    theirs.load_state_dict(ours.state_dict())
    x = values(4, 6, 4, dtype=torch.float64)
    expected = theirs(x, edges)
    got = ours(x, with_loops(graph))
    assert_close(got, expected, rtol=1e-12, atol=1e-12)
    gradients = [
        torch.autograd.grad(out.sin().sum(), layer.parameters()) for layer, out in ((ours, got), (theirs, expected))
    ]
    assert_close(gradients[0], gradients[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_summed_in_single(dtype: torch.dtype, kernels: None) -> None:
    crow, source, alpha, x = problem([3, 1], 2, 4, torch.float32)
    got = attend(crow, source, alpha.to(dtype), x.to(dtype))
    assert got.dtype is dtype
    assert_close(got, attend(crow, source, alpha.to(dtype).float(), x.to(dtype).float()).to(dtype))
    mixed = attend(crow, source, alpha, x.to(dtype))  # as in autocast, whose products alone are in half precision
    assert mixed.dtype is torch.float32
