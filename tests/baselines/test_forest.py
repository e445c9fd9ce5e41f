"""Elimination on forests against dense solves, numba against plain PyTorch, gradients against finite differences."""

import contextlib
from collections.abc import Iterator

import mpmath
import pytest
import torch
from graphs import MODEST, dense_propagation, values
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close

from gind.baselines import forest as module
from gind.baselines.forest import Forest, forest
from gind.graph import Graph
from gind.kernels import has_numba

OPERATORS = (module._eliminate, module._sweep)
C = torch.tensor([0.0, 0.3, 0.99], dtype=torch.float64)


@contextlib.contextmanager
def plain() -> Iterator[None]:
    """The definition in PyTorch."""
    with contextlib.ExitStack() as stack:
        for operator in OPERATORS if has_numba() else ():
            stack.enter_context(operator.set_kernel_enabled("cpu", enabled=False))
        yield


@pytest.fixture(params=["fused", "reference"])
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test on the numba kernels, and on their plain PyTorch definition."""
    if request.param == "fused" and not has_numba():
        pytest.skip("numba is not available")
    with plain() if request.param == "reference" else contextlib.nullcontext():
        yield


@st.composite
def edges_of_forests(draw: st.DrawFn) -> tuple[Tensor, int]:
    """Edges whose nodes are in any order, some of them self-loops; every node but the first may have one above it."""
    n = draw(st.integers(0, 12))
    above = [draw(st.one_of(st.none(), st.integers(0, i - 1))) for i in range(1, n)]
    pairs = [(i, j) for i, j in enumerate(above, start=1) if j is not None]
    loops = [(i, i) for i in range(n) if draw(st.booleans())]
    name = draw(st.permutations(range(n)))
    edges = [(name[i], name[j]) for i, j in pairs + loops]
    return torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T, n


def dense(edges: Tensor, n: int, c: Tensor, x: Tensor) -> Tensor:
    S = dense_propagation(edges, n)
    columns = [torch.linalg.solve(torch.eye(n).double() - c[k] * S, x[:, k]) for k in range(len(c))]
    return torch.stack(columns, dim=1)


def _many_digits(edges: Tensor, n: int, c: float) -> list[float]:
    """The first column of (I - cS)⁻¹."""
    A = mpmath.eye(n)
    for i, j in edges.T.tolist():
        A[i, j] += 1
        A[j, i] += 1
    s = [1 / mpmath.sqrt(sum(A[i, :])) for i in range(n)]
    system = mpmath.eye(n)
    for i in range(n):
        for j in range(n):
            system[i, j] -= mpmath.mpf(c) * s[i] * A[i, j] * s[j]
    unit = mpmath.zeros(n, 1)
    unit[0] = 1
    return [float(entry) for entry in mpmath.lu_solve(system, unit)]


def build(edges: Tensor, n: int, dtype: torch.dtype = torch.float64) -> Forest:
    tree = forest(Graph.from_edge_index(edges, n), dtype)
    assert tree is not None
    return tree


@MODEST
@given(drawn=edges_of_forests())
def test_solutions_are_those_of_dense_solves(drawn: tuple[Tensor, int]) -> None:
    x = values(1, drawn[1], 3, dtype=torch.float64)
    tree, expected = build(*drawn), dense(*drawn, C, x)
    assert_close(tree.inverse(C)(x), expected, rtol=1e-12, atol=1e-12)
    with plain():
        assert_close(tree.inverse(C)(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 1e-5), (torch.float64, 1e-13)], ids=str)
def test_small_entries_keep_their_digits(dtype: torch.dtype, tol: float, kernels: None) -> None:
    n, c = 30, torch.tensor([0.0, 0.3, 0.9], dtype=dtype)  # a path with a branch at every tenth node
    path = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    branches = torch.stack([torch.arange(0, n, 10), torch.arange(n, n + 3)])
    edges = torch.cat([path, branches], dim=1)
    x = torch.zeros(n + 3, 3, dtype=dtype)
    x[0] = 1
    z = build(edges, n + 3, dtype).inverse(c)(x)
    with mpmath.workdps(60):  # dense solves with more digits than any entry is small
        exact = [_many_digits(edges, n + 3, float(each)) for each in c]
    assert exact[1][n - 1] < 1e-20
    expected = torch.tensor(exact, dtype=torch.float64).T
    assert_close(z.double(), expected, rtol=tol, atol=0)


def test_what_comes_in_may_lie_in_memory_otherwise(kernels: None) -> None:
    tree = build(torch.tensor([[0, 1, 1], [1, 2, 3]]), 4)
    x, wide = values(2, 3, 4, dtype=torch.float64).T, torch.zeros(6, dtype=torch.float64)
    wide[::2] = C
    assert torch.equal(tree.inverse(wide[::2])(x), tree.inverse(C)(x.contiguous()))


def test_nothing_that_comes_in_is_changed(kernels: None) -> None:
    tree, x, c = build(torch.tensor([[0, 1], [1, 2]]), 3), values(3, 3, 3, dtype=torch.float64), C.clone()
    inputs = (x, c, tree.own, tree.link)
    before = [tensor.clone() for tensor in inputs]
    tree.inverse(c)(x)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))


def test_gradients_are_those_of_finite_differences(kernels: None) -> None:
    tree = build(torch.tensor([[0, 1, 1, 4], [1, 2, 3, 4]]), 5)
    assert gradcheck(tree.inverse(C), values(4, 5, 3, dtype=torch.float64).requires_grad_())


def test_operators_are_registered_as_torch_wants_them(kernels: None) -> None:
    tree, x = build(torch.tensor([[0, 1, 1], [1, 2, 3]]), 4), values(5, 4, 3, dtype=torch.float64)
    torch.library.opcheck(module._eliminate, (tree.parent, tree.bounds, tree.own, tree.link, C))
    gain, carry = module._eliminate(tree.parent, tree.bounds, tree.own, tree.link, C)
    torch.library.opcheck(module._sweep, (tree.parent, tree.bounds, gain, carry, x))


@pytest.mark.parametrize(
    ("channels", "dtype", "c"),
    [
        (4, torch.float64, C),
        (2, torch.float64, C),
        (3, torch.float32, C),
        (3, torch.float64, C.float()),
        (1, torch.float64, C[0]),
    ],
)
def test_what_does_not_fit_is_refused(channels: int, dtype: torch.dtype, c: Tensor, kernels: None) -> None:
    tree = build(torch.tensor([[0, 1], [1, 2]]), 3)
    with pytest.raises(ValueError, match="must be"):
        tree.inverse(c)(values(6, 3, channels, dtype=dtype))
