"""Every fused function equals its definition in `reference`, up to rounding."""

import dataclasses
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from graphs import MODEST, Raw, raws, values
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gind.kernels import ACTIVATIONS, compiled, cpu, reference

DTYPES = (torch.float32, torch.float64)
CHANNELS = st.integers(1, 70) | st.sampled_from([128, 130, 256])  # the C loops have whole blocks of 128
FUSED = pytest.mark.parametrize("fused", [compiled, cpu], ids=["compiled", "cpu"])
MODULES = pytest.mark.parametrize("module", [compiled, cpu, reference], ids=["compiled", "cpu", "reference"])


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Node tensors y, t, u, a cotangent c of the moments, and per edge σ(v) and the differences of t and u."""

    y: Tensor
    t: Tensor
    u: Tensor
    c: Tensor
    activation: str

    def differences(self, graph: Raw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        v, dt, du = ((x[graph.head].double() - x[graph.tail].double()) for x in (self.y, self.t, self.u))
        return v, torch.tanh(v) if self.activation == "tanh" else v, dt, du


@dataclasses.dataclass(frozen=True)
class Function:
    """A node function, and how large the amount of an edge is: rounding errors are measured in units of it."""

    name: str
    call: Callable[[ModuleType, tuple[Tensor, Tensor, Tensor], Raw, Inputs], Tensor]
    size: Callable[[Inputs, Raw], Tensor]


def _secant_size(x: Inputs, graph: Raw) -> Tensor:
    v, s, dt, _ = x.differences(graph)
    return torch.where(v == 0, 1.0, s / v) * dt


def _curve_size(x: Inputs, graph: Raw) -> Tensor:
    _, s, dt, du = x.differences(graph)
    return 2 * s * dt * du * (x.activation == "tanh")


def _vjp_size(x: Inputs, graph: Raw) -> Tensor:
    _, s, dt, _ = (part.abs() for part in x.differences(graph))
    c = x.c[:, graph.batch[graph.tail]] if len(graph.batch) else x.c
    return dt + c[0].abs() + (2 * c[1].abs() + c[2].abs()) * s


FUNCTIONS = [
    Function(
        "flux",
        lambda k, e, g, x: k.flux(x.y, e, g.batch, g.num_graphs, x.activation, False)[0],
        lambda x, g: x.differences(g)[1],
    ),
    Function(
        "flux with moments",
        lambda k, e, g, x: k.flux(x.y, e, g.batch, g.num_graphs, x.activation, True)[0],
        lambda x, g: x.differences(g)[1],
    ),
    Function(
        "flux_jvp",
        lambda k, e, g, x: k.flux_jvp(x.y, x.t, e, x.activation),
        lambda x, g: x.differences(g)[2],
    ),
    Function("flux_secant", lambda k, e, g, x: k.flux_secant(x.y, x.t, e, x.activation), _secant_size),
    Function("flux_curve", lambda k, e, g, x: k.flux_curve(x.y, x.t, x.u, e, x.activation), _curve_size),
    Function(
        "flux_vjp",
        lambda k, e, g, x: k.flux_vjp(x.y, x.t, x.c, e, g.batch, x.activation),
        _vjp_size,
    ),
    Function(
        "flux_vjp of two moments",
        lambda k, e, g, x: k.flux_vjp(x.y, x.t, x.c[:2], e, g.batch, x.activation),
        _vjp_size,
    ),
]


def inputs(seed: int, graph: Raw, channels: int, dtype: torch.dtype, scale: int, activation: str) -> Inputs:
    """y at the given power of ten, or (scale 99) with entries of all magnitudes."""
    shape = graph.num_nodes, channels
    # t and u stay moderate: products with them must not leave float32
    exponents = (-30.0, 30.0) if scale == 99 else (scale, scale)
    y = values(seed, *shape, dtype=dtype, exponents=exponents)
    t, u = (values(seed + k, *shape, dtype=dtype, exponents=(-3, 3)) for k in (1, 2))
    c = values(seed + 3, 3, graph.num_graphs, channels, dtype=torch.float64)
    return Inputs(y, t, u, c, activation)


def incident(amount: Tensor, graph: Raw) -> Tensor:
    """Σ over the edges at each node of w |amount|."""
    weighted = amount.abs() * graph.weight.double()[:, None] if len(graph.weight) else amount.abs()
    out = torch.zeros(graph.num_nodes, *amount.shape[1:], dtype=torch.float64)
    return out.index_add_(0, graph.tail, weighted).index_add_(0, graph.head, weighted)


def assert_within(actual: Tensor, expected: Tensor, bound: Tensor) -> None:
    a, b = actual.double(), expected.double()
    good = (a == b) | ((a - b).abs() <= bound)
    assert good.all(), f"{a[~good][0]} instead of {b[~good][0]}, allowed is {bound[~good][0]}"


SCALES = st.integers(-30, 30) | st.integers(-4, 1) | st.just(99)


@FUSED
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_fused_equals_reference(fused: ModuleType, function: Function, dtype: torch.dtype, activation: str) -> None:
    @MODEST
    @given(raws(dtype), CHANNELS, SCALES, st.integers(0, 2**20))
    def check(graph: Raw, channels: int, scale: int, seed: int) -> None:
        x = inputs(seed, graph, channels, dtype, scale, activation)
        actual = function.call(fused, graph.fused, graph, x)
        expected = function.call(reference, graph.plain, graph, x)
        assert actual.dtype == dtype
        terms = incident(torch.ones(len(graph.tail), 1, dtype=torch.float64), graph._replace(weight=graph.weight[:0]))
        info = torch.finfo(dtype)
        # 16 roundings per edge (tanh: 4e-7 is 4 of float32), one per term of the sum, on both sides
        bound = 2 * (16 + terms) * info.eps * incident(function.size(x, graph), graph) + info.tiny
        assert_within(actual, expected, bound)

    check()


@FUSED
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_fused_moments_equal_reference(fused: ModuleType, dtype: torch.dtype, activation: str) -> None:
    # squares of the identity leave float32 beyond 1e18
    scales = SCALES if activation == "tanh" else st.integers(-15, 15)

    @MODEST
    @given(raws(dtype), CHANNELS, scales, st.integers(0, 2**20))
    def check(graph: Raw, channels: int, scale: int, seed: int) -> None:
        x = inputs(seed, graph, channels, dtype, scale, activation)
        batch, graphs = graph.batch, graph.num_graphs
        actual = fused.flux(x.y, graph.fused, batch, graphs, activation, True)[1]
        expected = reference.flux(x.y, graph.plain, batch, graphs, activation, True)[1]
        assert actual.shape == expected.shape == (3, graphs, channels)
        assert actual.dtype == expected.dtype == torch.float64
        sigma, _, _, primitive = reference.activate(x.differences(graph)[0], activation)
        size = torch.stack([sigma.abs(), sigma**2, primitive])
        size = size * graph.weight.double()[:, None] if len(graph.weight) else size
        owner = batch[graph.tail] if len(batch) else torch.zeros_like(graph.tail)
        total = torch.zeros(3, graphs, channels, dtype=torch.float64).index_add_(1, owner, size)
        info = torch.finfo(dtype)
        edges = len(graph.tail)
        # log cosh: 1e-6 relative in float32, 1e-14 in float64 (45 roundings)
        assert_within(actual, expected, 2 * (48 + edges) * info.eps * total + 1e3 * edges * info.tiny)

    check()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@MODULES
def test_moments_have_a_row_for_each_graph_even_without_nodes(module: ModuleType, dtype: torch.dtype) -> None:
    nothing, ptr = torch.empty(0, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    edges = (ptr if module is not reference else nothing, nothing, torch.empty(0, dtype=dtype))
    for graphs in (0, 1, 3):
        out, sums = module.flux(torch.empty(0, 5, dtype=dtype), edges, nothing, graphs, "tanh", True)
        assert out.shape == (0, 5)
        assert sums.shape == (3, graphs, 5)
        assert not sums.any()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@MODULES
def test_only_edges_with_nan_or_two_infinities_give_nan(module: ModuleType, activation: str) -> None:
    """No NaN is swallowed, none is made; an infinity acts through σ(±∞)."""

    @MODEST
    @given(raws(torch.float32), st.lists(st.sampled_from([0.5, torch.nan, torch.inf, -torch.inf]), min_size=1))
    def check(graph: Raw, kinds: list[float]) -> None:
        n, rows = graph.num_nodes, torch.arange(graph.num_nodes)
        y = torch.tensor(kinds)[rows % len(kinds)][:, None] * torch.linspace(1, 2, 17)
        edges = graph.fused if module is not reference else graph.plain
        out, sums = module.flux(y, edges, graph.batch, graph.num_graphs, activation, True)
        plain, _ = module.flux(y, edges, graph.batch, graph.num_graphs, activation, False)
        weight = graph.weight if len(graph.weight) else torch.ones(len(graph.tail))
        expected = torch.zeros(n, 17)
        for tail, head, w in zip(graph.tail.tolist(), graph.head.tolist(), weight, strict=True):
            q = w * (torch.tanh(y[head] - y[tail]) if activation == "tanh" else y[head] - y[tail])
            expected[head] += q
            expected[tail] -= q
        assert torch.allclose(out, expected, rtol=1e-4, atol=1e-2, equal_nan=True)
        assert torch.equal(out.nan_to_num(7), plain.nan_to_num(7))
        differences = y[graph.head] - y[graph.tail]
        assert bool(sums[1:].isnan().any()) >= bool(differences.isnan().any())
        if not differences.isnan().any() and not (differences.isinf().any() and (weight == 0).any()):
            assert not sums[1:].isnan().any()

    check()
