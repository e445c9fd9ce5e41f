"""The torch operators: gradients, registration, layouts, and what is known about the products."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from graphs import MODEST, Raw, raws, some_raw, values
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gind.kernels import ACTIVATIONS, flux, flux_jvp, flux_secant, op, reference

# the defaults (1e-3) would not see an error of a tenth of a percent
gradcheck = functools.partial(torch.autograd.gradcheck, rtol=1e-6, atol=1e-8)
gradgradcheck = functools.partial(torch.autograd.gradgradcheck, rtol=1e-6, atol=1e-8)
DTYPES = (torch.float32, torch.float64)
PRODUCTS = [flux_jvp, flux_secant]
ACTIVATION = pytest.mark.parametrize("activation", ACTIVATIONS)
KINDS = pytest.mark.parametrize(
    "graph", [some_raw(), some_raw(weighted=False), some_raw(batched=False)], ids=["both", "batch", "weight"]
)


def node_tensors(graph: Raw, count: int, channels: int = 3, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [values(k, graph.num_nodes, channels, dtype=dtype) for k in range(count)]


@KINDS
@ACTIVATION
def test_gradient_of_flux(graph: Raw, activation: str) -> None:
    (y,) = node_tensors(graph, 1)
    edges = (*graph.edges, graph.batch, graph.num_graphs, activation)
    y.requires_grad_()
    assert gradcheck(lambda y: flux(y, *edges, False)[0], y)
    assert gradcheck(lambda y: flux(y, *edges, True), y)
    # orders of magnitude apart, so that a small one cannot hide
    for moment in range(3):
        assert gradcheck(lambda y, k=moment: flux(y, *edges, True)[1][k], y)
    assert gradgradcheck(lambda y: flux(y, *edges, False)[0], y)


@KINDS
@ACTIVATION
@pytest.mark.parametrize("product", PRODUCTS)
def test_gradient_of_products(product: Callable[..., Tensor], graph: Raw, activation: str) -> None:
    y, t = (x.requires_grad_() for x in node_tensors(graph, 2))
    assert gradcheck(lambda y, t: product(y, t, *graph.edges, activation), (y, t))
    fixed_y, fixed_t = y.detach(), t.detach()
    assert gradcheck(lambda t: product(fixed_y, t, *graph.edges, activation), t)
    assert gradcheck(lambda y: product(y, fixed_t, *graph.edges, activation), y)


@ACTIVATION
def test_moments_refuse_a_second_derivative_rather_than_drop_it(activation: str) -> None:
    graph = some_raw()
    y = node_tensors(graph, 1)[0].requires_grad_()
    sums = flux(y, *graph.edges, graph.batch, graph.num_graphs, activation, True)[1]
    (first,) = torch.autograd.grad(sums.sum(), y, create_graph=True)
    with pytest.raises(RuntimeError, match="flux_vjp"):
        torch.autograd.grad(first.sum(), y)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@ACTIVATION
def test_products_are_symmetric_and_positive(dtype: torch.dtype, activation: str) -> None:
    """⟨u, A(y)t⟩ = ⟨t, A(y)u⟩ and ⟨t, A(y)t⟩ ≥ 0."""

    @MODEST
    @given(raws(dtype), st.integers(1, 40), st.integers(0, 2**20))
    def check(graph: Raw, channels: int, seed: int) -> None:
        y, t, u = (values(seed + k, graph.num_nodes, channels, dtype=dtype) for k in range(3))
        for product in PRODUCTS:
            at, au = product(y, t, *graph.edges, activation), product(y, u, *graph.edges, activation)
            tolerance = 1e3 * torch.finfo(dtype).eps
            torch.testing.assert_close(
                (u * at).sum(), (t * au).sum(), rtol=0, atol=tolerance * float((u * at).norm() + (t * au).norm())
            )
            assert (t * at).sum() >= -tolerance * (t * at).norm()

    check()


@KINDS
@ACTIVATION
def test_jvp_is_the_derivative_of_flux(graph: Raw, activation: str) -> None:
    y, t = node_tensors(graph, 2)

    def definition(y: Tensor) -> Tensor:
        return reference.flux(y, graph.plain, graph.batch, graph.num_graphs, activation, False)[0]

    expected = torch.func.jvp(definition, (y,), (t,))[1]
    actual = flux_jvp(y, t, *graph.edges, activation)
    torch.testing.assert_close(actual, expected, rtol=1e-13, atol=1e-13)
    step = 1e-6
    difference = (definition(y + step * t) - definition(y - step * t)) / (2 * step)
    torch.testing.assert_close(actual, difference, rtol=1e-7, atol=1e-7)


@KINDS
@ACTIVATION
def test_secant_maps_y_to_its_flux(graph: Raw, activation: str) -> None:
    """σ(v)/v · v = σ(v)."""
    (y,) = node_tensors(graph, 1)
    expected, _ = flux(y, *graph.edges, graph.batch, graph.num_graphs, activation)
    torch.testing.assert_close(flux_secant(y, y, *graph.edges, activation), expected, rtol=1e-13, atol=1e-13)


def operators() -> list[tuple[str, Any, Callable[[Raw, list[Tensor], str], tuple[Any, ...]]]]:
    def cotangent(g: Raw) -> Tensor:
        return values(9, 3, g.num_graphs, 3, dtype=torch.float64)

    return [
        ("flux", op._flux, lambda g, x, a: (x[0], *g.edges, g.batch, g.num_graphs, a, False)),
        ("flux and moments", op._flux, lambda g, x, a: (x[0], *g.edges, g.batch, g.num_graphs, a, True)),
        ("flux_jvp", op._flux_jvp, lambda g, x, a: (*x[:2], *g.edges, a)),
        ("flux_secant", op._flux_secant, lambda g, x, a: (*x[:2], *g.edges, a)),
        ("flux_curve", op._flux_curve, lambda g, x, a: (*x, *g.edges, a)),
        ("secant_curve", op._secant_curve, lambda g, x, a: (*x, *g.edges, a)),
        ("flux_vjp", op._flux_vjp, lambda g, x, a: (*x[:2], cotangent(g), *g.edges, g.batch, a)),
        ("flux_vjp of two", op._flux_vjp, lambda g, x, a: (*x[:2], cotangent(g)[:2], *g.edges, g.batch, a)),
    ]


@KINDS
@pytest.mark.parametrize(("name", "operator", "arguments"), operators(), ids=[row[0] for row in operators()])
def test_operator_is_registered_correctly(name: str, operator: Any, arguments: Any, graph: Raw) -> None:
    differentiable = name.startswith("flux") and not name.startswith(("flux_curve", "flux_vjp"))
    tensors = [x.requires_grad_(differentiable) for x in node_tensors(graph, 3)]
    torch.library.opcheck(operator, arguments(graph, tensors, "tanh"))


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.t().contiguous().t(),
    "every other column": lambda x: torch.stack([x, -x], dim=2).flatten(1)[:, ::2],
    "every other row": lambda x: torch.stack([x, -x], dim=1).flatten(0, 1)[::2],
    "offset": lambda x: torch.cat([x[:1], x])[1:],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layout_does_not_matter(layout: str, dtype: torch.dtype) -> None:
    graph = some_raw(dtype)
    tensors = node_tensors(graph, 2, 21, dtype)
    results = []
    for change in (torch.clone, LAYOUTS[layout]):
        y, t = (change(x).requires_grad_() for x in tensors)
        out, sums = flux(y, *graph.edges, graph.batch, graph.num_graphs, moments=True)
        products = [product(y, t, *graph.edges) for product in PRODUCTS]
        # a transposed cotangent reaches the backward kernels
        loss = sum(((x.t() @ x).sum() for x in (out, *products)), sums.square().sum())
        results.append([out, sums, *products, *torch.autograd.grad(loss, (y, t))])
    for expected, actual in zip(*results, strict=True):
        assert torch.equal(actual, expected)


def test_an_expanded_input_works() -> None:
    graph = some_raw()
    row = torch.linspace(-1, 1, 5, dtype=torch.float64)
    y = row.expand(graph.num_nodes, 5)
    assert not flux(y, *graph.edges, graph.batch, graph.num_graphs)[0].any()
    column = values(0, graph.num_nodes, 1, dtype=torch.float64)
    wide = flux(column.expand(-1, 5), *graph.edges, graph.batch, graph.num_graphs)[0]
    narrow = flux(column, *graph.edges, graph.batch, graph.num_graphs)[0]
    torch.testing.assert_close(wide, narrow.expand(-1, 5), rtol=1e-14, atol=1e-14)


def test_all_devices_say_who_serves_them() -> None:
    assert op.implementation("cpu") in ("gind.kernels.compiled", "gind.kernels.cpu")
    assert op.implementation("cpu") not in op.why_not("cpu")
    assert op.implementation("abacus").startswith("reference")


@pytest.mark.parametrize("activation", op.ACTIVATIONS)
def test_without_the_primitive_all_else_is_the_same(activation: str) -> None:
    graph = some_raw()
    results = []
    for primitive in (True, False):
        y = values(0, graph.num_nodes, 5, dtype=torch.float64).requires_grad_()
        out, sums = flux(y, *graph.edges, graph.batch, graph.num_graphs, activation, True, primitive)
        # a gradient with respect to what is constant goes nowhere
        loss = out.square().sum() + sums[:2].sum() + (0 if primitive else sums[2].sum())
        results.append((out, sums[:2], *torch.autograd.grad(loss, y)))
    assert bool(flux(y, *graph.edges, graph.batch, graph.num_graphs, activation, True)[1][2].any())
    assert not sums[2].any()
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
