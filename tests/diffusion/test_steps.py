"""Many steps of a live map in one call against the steps one by one, which define them."""

from typing import Any

import pytest
import torch
from cases import make_graph, make_input, make_layer, some_graph, some_graph_index
from graphs import MODEST, Given, givens
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import gind
from gind.diffusion.map import LiveMap
from gind.equilibrium.descent import Repeatable
from gind.kernels import onecall
from gind.kernels.onecall import switched_off

F32, F64 = torch.float32, torch.float64
LIVE: dict[str, dict[str, Any]] = {
    "layer": {"edge_norm": gind.LiveNorm("layer")},
    "instance": {"edge_norm": gind.LiveNorm("instance"), "flux_gain": 2.0},
    "pulled": {"edge_norm": gind.LiveNorm("layer"), "regularizer": gind.LaplacianStep(0.3), "scaling": gind.Row()},
    "constant": {"regularizer": gind.LaplacianStep(0.3), "flux_channels": 19},
    "frozen": {"regularizer": gind.LaplacianStep(0.1), "edge_norm": gind.FrozenNorm("instance", "before")},
    "dropout": {"edge_norm": gind.LiveNorm("layer"), "dropout": 0.4},
    "linear": {"edge_norm": gind.LiveNorm("layer"), "regularizer": gind.LaplacianStep(0.3), "activation": "identity"},
    "linear, constant": {"regularizer": gind.LaplacianStep(0.3), "activation": "identity"},
}


@MODEST
@given(givens(), st.sampled_from(sorted(LIVE)), st.sampled_from([F32, F64]), st.sampled_from([0, 1, 3]), st.booleans())
def test_many_steps_in_one_call_are_the_steps_one_by_one(
    g: Given, option: str, dtype: torch.dtype, copies: int, warm: bool
) -> None:
    graph = make_graph(g, copies)
    layer = make_layer(2.0, 5, dtype, alpha=0.3, **LIVE[option])
    torch.manual_seed(3)  # the dropout mask
    fn = layer.bind(make_input(graph.num_nodes, 5, dtype), graph)
    assert isinstance(fn, LiveMap)
    z = make_input(graph.num_nodes, 5, dtype, seed=1) if warm else torch.zeros(graph.num_nodes, 5, dtype=dtype)
    with torch.no_grad():
        many = fn.repeat(z, 6)
        assert many is not None
        with switched_off():
            assert fn.repeat(z, 6) is None
            for _ in range(6):
                z = fn(z)
    torch.testing.assert_close(many, z, rtol=1e-4 if dtype == F32 else 1e-11, atol=1e-5 if dtype == F32 else 1e-12)


@pytest.mark.parametrize("option", ["pulled", "constant", "linear", "linear, constant"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("in_c", [False, True])
def test_many_steps_with_edge_loops_of_both_kinds(
    directed: bool, in_c: bool, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = gind.Graph.from_edge_index(some_graph_index(), 20, directed=directed)
    layer = make_layer(2.0, 5, F64, **LIVE[option])
    fn = layer.bind(make_input(20, 5), graph)
    assert isinstance(fn, LiveMap)
    if not in_c:
        monkeypatch.setattr(onecall, "address", lambda name, dtype: 0)
    z = torch.zeros(20, 5, dtype=F64)
    with torch.no_grad():
        many = fn.repeat(z, 9)
        for _ in range(9):
            z = fn(z)
    assert many is not None
    torch.testing.assert_close(many, z, rtol=1e-11, atol=1e-12)


@MODEST
@given(givens(), st.sampled_from(sorted(LIVE)), st.sampled_from([F32, F64]), st.sampled_from([0, 1, 3]), st.booleans())
def test_turns_of_several_layers_in_one_call_are_those_one_by_one(
    g: Given, option: str, dtype: torch.dtype, copies: int, warm: bool
) -> None:
    graph = make_graph(g, copies)
    layers = [make_layer(norm, 5, dtype, **LIVE[option]) for norm in (2.0, 0.5, 1.0)]
    composition, b = gind.Composition(layers, alpha=0.3), make_input(graph.num_nodes, 5, dtype)
    torch.manual_seed(3)  # the dropout masks
    chain = composition._chain([layer.bind(b, graph) for layer in layers])
    assert isinstance(chain, Repeatable)
    z = make_input(graph.num_nodes, 5, dtype, seed=1) if warm else torch.zeros(graph.num_nodes, 5, dtype=dtype)
    assert chain.repeat(z, 4) is None  # with gradient
    with torch.no_grad():
        many = chain.repeat(z, 4)
        assert many is not None
        with switched_off():
            assert chain.repeat(z, 4) is None
            for _ in range(4):
                z = chain(z)
    torch.testing.assert_close(many, z, rtol=1e-4 if dtype == F32 else 1e-11, atol=1e-5 if dtype == F32 else 1e-12)


@pytest.mark.parametrize(
    "different", [("flux_channels", 5, 40), ("activation", "tanh", "identity"), ("activation", "identity", "tanh")]
)
def test_layers_of_several_kinds_take_turns_one_by_one(different: tuple[str, Any, Any]) -> None:
    name, *values = different
    layers = [make_layer(2.0, 5, F64, **LIVE["layer"], **{name: value}) for value in values]
    composition, b, graph = gind.Composition(layers), make_input(20, 5), some_graph()
    chain = composition._chain([layer.bind(b, graph) for layer in layers])
    assert isinstance(chain, Repeatable)
    with torch.no_grad():
        assert chain.repeat(torch.zeros(20, 5, dtype=F64), 3) is None


def test_numbers_of_another_type_take_turns_as_well() -> None:
    layers = [make_layer(2.0, 5, F64, edge_norm=gind.LiveNorm(eps=eps)) for eps in (1, 1e-5)]
    composition, b, graph = gind.Composition(layers), make_input(20, 5), some_graph()
    chain = composition._chain([layer.bind(b, graph) for layer in layers])
    assert isinstance(chain, Repeatable)
    with torch.no_grad():
        z = torch.zeros(20, 5, dtype=F64)
        assert chain.repeat(z, 0) is None
        many = chain.repeat(z, 2)
        assert many is not None
        torch.testing.assert_close(many, chain(chain(z)), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"edge_norm": gind.LiveNorm("layer", "before")},
        {"regularizer": gind.Decorrelation(0.1)},
    ],
)
def test_steps_that_no_call_covers_are_declined(options: dict[str, Any]) -> None:
    fn = make_layer(2.0, 5, F64, **options).bind(make_input(20, 5), some_graph())
    assert isinstance(fn, LiveMap)
    with torch.no_grad():
        assert fn.repeat(torch.zeros(20, 5, dtype=F64), 3) is None


def bound(options: dict[str, Any], graph: gind.Graph, dtype: torch.dtype) -> tuple[gind.Diffusion, Tensor, LiveMap]:
    layer = make_layer(2.0, 5, dtype, alpha=0.3, **options)
    b = make_input(graph.num_nodes, 5, dtype).requires_grad_()
    torch.manual_seed(3)  # the dropout mask
    fn = layer.bind(b, graph)
    assert isinstance(fn, LiveMap)
    return layer, b, fn


def gradients(fn: LiveMap, z: Tensor, wanted: list[Tensor], before: int) -> tuple[Tensor, ...]:
    """Of some function of the state after five steps, `before` of them not recorded."""
    with torch.no_grad():
        for _ in range(before):
            z = fn(z) if (one := fn.repeat(z, 1)) is None else one
    end = fn.repeat(z, 5 - before)
    if end is None:
        end = z
        for _ in range(5 - before):
            end = fn(end)
    return torch.autograd.grad((end * torch.linspace(-1, 2, end.numel(), dtype=z.dtype).view_as(end)).sum(), wanted)


@MODEST
@given(
    givens(),
    st.sampled_from(sorted(set(LIVE) - {"frozen"})),
    st.sampled_from([F32, F64]),
    st.sampled_from([0, 3]),
    st.sampled_from([0, 3]),
    st.sampled_from(["zero", "given", "wanted"]),
)
def test_gradients_of_many_steps_are_those_of_the_steps(
    g: Given, option: str, dtype: torch.dtype, copies: int, before: int, start: str
) -> None:
    graph = make_graph(g, copies)
    layer, b, fn = bound(LIVE[option], graph, dtype)
    wanted = [b, *layer.parameters()]
    z = torch.zeros(graph.num_nodes, 5, dtype=dtype) if start == "zero" else make_input(graph.num_nodes, 5, dtype, 1)
    if start == "wanted" and before == 0:
        z.requires_grad_()
        wanted.append(z)
    found = gradients(fn, z, wanted, before)
    with switched_off():
        again, b, fn = bound(LIVE[option], graph, dtype)
        expected = gradients(fn, z, [b, *again.parameters(), *([z] if z.requires_grad else [])], before)
    for one, other in zip(found, expected, strict=True):
        size = other.abs().max() if other.numel() else 0.0
        assert (one - other).abs().le((1e-3 if dtype == F32 else 1e-9) * (1 + size)).all()


@pytest.mark.parametrize("option", ["layer", "instance", "pulled", "constant", "dropout", "linear", "linear, constant"])
@pytest.mark.parametrize("in_c", [False, True])
def test_gradients_are_right(option: str, in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_c:
        monkeypatch.setattr(onecall, "address", lambda name, dtype: 0)
    layer, b, _ = bound(LIVE[option], some_graph(), F64)
    gamma = () if layer.gamma is None else (layer.gamma,)

    def run(z: Tensor, b: Tensor, K: Tensor, *gamma: Tensor) -> Tensor:
        given = {"K": K, **({"gamma": gamma[0]} if gamma else {})}
        torch.manual_seed(3)
        named = {f"layer.{name}": value for name, value in given.items()}
        fn: LiveMap = torch.func.functional_call(_Bind(layer), named, (b,))
        end = fn.repeat(z, 3)
        assert end is not None
        return end

    z = make_input(20, 5, F64, 1).requires_grad_()
    assert torch.autograd.gradcheck(run, (z, b, layer.K, *gamma))
    if in_c and option == "constant":  # the moments of a live norm have no second derivative
        assert torch.autograd.gradgradcheck(run, (z, b, layer.K, *gamma))


class _Bind(torch.nn.Module):
    def __init__(self, layer: gind.Diffusion) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, b: Tensor) -> LiveMap:
        fn = self.layer.bind(b, some_graph())
        assert isinstance(fn, LiveMap)
        return fn


@pytest.mark.parametrize("option", ["layer", "constant"])
def test_gradients_with_and_without_a_graph_of_their_own_agree(option: str) -> None:
    """K acts twice, in the steps and in what is injected."""
    layer, b, fn = bound(LIVE[option], some_graph(), F64)
    wanted = [b, *layer.parameters()]
    end = fn.repeat(make_input(20, 5, F64, 1), 3)
    assert end is not None
    plain = torch.autograd.grad(end.square().sum(), wanted, retain_graph=True)
    again = torch.autograd.grad(end.square().sum(), wanted, create_graph=True)
    for one, other in zip(plain, again, strict=True):
        torch.testing.assert_close(one, other)


def test_a_state_that_was_changed_is_a_new_start() -> None:
    _, _, fn = bound(LIVE["layer"], some_graph(), F64)
    with torch.no_grad():
        z = fn.repeat(torch.zeros(20, 5, dtype=F64), 3)
        assert z is not None
        z.mul_(2)
        torch.testing.assert_close(fn.repeat(z, 1), fn(z))


def test_without_nodes() -> None:
    graph = gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 0)
    layer, b, fn = bound(LIVE["layer"], graph, F64)
    end = fn.repeat(torch.zeros(0, 5, dtype=F64), 2)
    assert end is not None
    for found, parameter in zip(torch.autograd.grad(end.sum(), [b, layer.K]), (b, layer.K), strict=True):
        assert found.shape == parameter.shape
        assert not found.any()


def test_a_mask_that_wants_a_gradient_gets_it() -> None:
    mask = torch.rand(20, 5, dtype=F64, requires_grad=True)
    fn = make_layer(2.0, 5, F64, **LIVE["layer"]).bind(make_input(20, 5), some_graph(), mask)
    assert isinstance(fn, LiveMap)
    assert fn.repeat(torch.zeros(20, 5, dtype=F64), 2) is None


def test_backward_under_autocast() -> None:
    _, _, fn = bound(LIVE["pulled"], some_graph(), F32)
    end = fn.repeat(torch.zeros(20, 5), 2)
    assert end is not None
    (expected,) = torch.autograd.grad(end.sum(), fn.C, retain_graph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (found,) = torch.autograd.grad(end.sum(), fn.C)
    torch.testing.assert_close(found, expected)
