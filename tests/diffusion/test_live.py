"""Maps without an energy: live normalizations, regularizers as steps, compositions, against NumPy."""

from typing import Literal

import numpy as np
import pytest
import torch
from cases import GRAPHS, as_numpy, make_input, make_layer
from oracle import Array, edges_of
from torch.testing import assert_close

import gind
from gind.diffusion.map import LiveMap, zeros

FLAVORS: list[Literal["layer", "instance"]] = ["layer", "instance"]


def written_out(layer: gind.Diffusion, z: Array, b: Array, name: str) -> Array:
    """f(z) with a live normalization on one graph, edge tensors and all."""
    case = GRAPHS[name]
    loops = int((case.edge_index[0] == case.edge_index[1]).sum())
    edges, w = edges_of(case.edge_index.numpy(), None, case.directed)
    n = case.num_nodes
    G = np.zeros((len(edges), n))
    for e, (i, j) in enumerate(edges):
        G[e, j], G[e, i] = 1, -1
    s = (2 * ((np.abs(G) * w[:, None]).sum(axis=0) + 1)) ** -0.5
    K = as_numpy(layer.K)
    assert layer.gamma is not None
    assert layer.edge_norm is not None
    gamma, norm = as_numpy(layer.gamma), layer.edge_norm
    v = (G * s) @ (z + b) @ K.T

    def normalize(x: Array) -> Array:
        # an undirected edge stands for both directions; a loop is one edge without flux; repeats count by their weight
        signs = (1.0,) if case.directed else (1.0, -1.0)
        count = len(signs) * w.sum() + loops
        square = len(signs) * (w[:, None] * x**2).sum(axis=0)
        total = sum(sign * (w[:, None] * x).sum(axis=0) for sign in signs)
        if norm.flavor == "instance":
            return np.asarray(gamma * x / np.sqrt(square / count + norm.eps))
        if norm.place == "before":
            return np.asarray(gamma * x / np.sqrt(square.sum() / (count * x.shape[1]) + norm.eps))
        size = count * x.shape[1]
        std = np.sqrt(square.sum() / size - (np.sum(total) / size) ** 2)
        if case.directed:  # all weights are 1: the formula is NumPy's
            full = np.concatenate([x, np.zeros((loops, x.shape[1]))])
            np.testing.assert_allclose(std, full.std())
        return np.asarray(gamma * x / (std + norm.eps))

    sigma = np.tanh(normalize(v)) if norm.place == "before" else normalize(np.tanh(v))
    return np.asarray(-(G * s).T @ (w[:, None] * sigma) @ K)


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("name", ["simple", "directed", "multigraph", "star", "disconnected"])
def test_live_map_equals_the_equations(
    name: str, place: Literal["before", "after"], flavor: Literal["layer", "instance"]
) -> None:
    layer = make_layer(edge_norm=gind.LiveNorm(flavor, place))
    with torch.no_grad():
        assert layer.gamma is not None
        layer.gamma.neg_()  # any sign is allowed here
    n = GRAPHS[name].num_nodes
    b, z = make_input(n), make_input(n, seed=1)
    fn = layer.bind(b, GRAPHS[name].graph())
    assert isinstance(fn, LiveMap)
    np.testing.assert_allclose(as_numpy(fn(z)), written_out(layer, as_numpy(z), as_numpy(b), name), atol=1e-12)


def test_live_layers_have_no_energy_and_say_so() -> None:
    layer = make_layer(0.5, edge_norm=gind.LiveNorm(), alpha=0.1, stop=gind.Stop(1e-8, 2000))
    assert not layer.has_energy
    _, solution = layer(make_input(9), GRAPHS["star"].graph(), return_solution=True)
    assert bool(torch.isinf(solution.bound).all())
    with pytest.raises(ValueError, match="no energy"):
        gind.energy(layer, make_input(9), make_input(9), GRAPHS["star"].graph())
    with pytest.raises(ValueError, match="needs an energy"):
        gind.Diffusion(3, edge_norm=gind.LiveNorm(), solver=gind.Nesterov())


@pytest.mark.parametrize("name", ["simple", "directed"])
def test_laplacian_step_is_the_gradient_of_its_definition(name: str) -> None:
    case, graph = GRAPHS[name], GRAPHS[name].graph()
    s = gind.Symmetric().vector(graph)[:, None]
    z = make_input(case.num_nodes).requires_grad_()
    # every stored direction: both for an undirected edge, the given one for a directed
    i, j = graph.tail, graph.head
    if not case.directed:
        i, j = torch.cat([i, j]), torch.cat([j, i])
    weight = torch.ones(graph.num_edges) if graph.weight is None else graph.weight
    w = weight if case.directed else torch.cat([weight, weight])
    penalty = (w[:, None] * ((s * z)[i] - (s * z)[j]).square()).sum() / case.num_nodes
    (expected,) = torch.autograd.grad(penalty, z)
    assert_close(gind.LaplacianStep(1.0).gradient(z.detach(), s, graph), expected)


def test_decorrelation_is_the_gradient_of_its_definition() -> None:
    graph = gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 12, batch=torch.arange(12) // 6)
    z = make_input(12, 4).requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for part in (z[:6], z[6:]):
        unit = part / part.norm(dim=0)
        gram = unit.T @ unit
        excess = torch.nn.functional.hardshrink(gram - torch.diag(gram.diagonal()), 0.3)
        total = total + excess.square().mean()
    (expected,) = torch.autograd.grad(total, z)
    assert float(expected.abs().max()) > 0
    ones = torch.ones(12, 1, dtype=torch.float64)
    assert_close(gind.Decorrelation(1.0, 0.3).gradient(z.detach(), ones, graph), expected)


def test_composition_is_the_composition() -> None:
    layers = [make_layer(1.0, seed=k, injection="separate", edge_norm=gind.LiveNorm("instance")) for k in range(3)]
    graph, b = GRAPHS["weighted"].graph(), make_input(9)
    model = gind.Composition(layers, alpha=0.3, stop=gind.Stop(0.0, 2), throw="ignore", adjoint=gind.Unrolled())
    out, solution = model(b, graph, return_solution=True)
    z = torch.zeros_like(b)
    for _ in range(2):
        for layer in layers:
            z = torch.lerp(z, layer.bind(b, graph)(z), 0.3)
    assert_close(solution.value, z)
    assert_close(out, b + z)
    out.sum().backward()
    assert all(layer.K.grad is not None and bool(layer.K.grad.isfinite().all()) for layer in layers)
    with pytest.raises(ValueError, match="agree"):
        gind.Composition([layers[0], make_layer(channels=4)])
    with pytest.raises(TypeError, match="at least one"):
        gind.Composition([])


@pytest.mark.parametrize("norm", [None, gind.LiveNorm("layer")], ids=["energy", "live"])
def test_a_start_that_takes_no_memory_is_a_start_from_zero(norm: gind.LiveNorm | None) -> None:
    layer, graph = make_layer(1.0, injection="separate", edge_norm=norm), GRAPHS["weighted"].graph()
    b, weight = make_input(9).requires_grad_(), make_input(9, seed=5)
    parameters = [b, *(p for p in layer.parameters() if p is not layer.K)]
    found = []
    for start in (zeros(b.detach()), torch.zeros_like(b), torch.zeros_like(b).requires_grad_()):
        fn = layer.bind(b, graph)
        once = fn(start)
        found.append((once, *torch.autograd.grad((once * weight).sum(), [layer.K, *parameters])))
    for first, second, third in zip(*found, strict=True):
        assert_close(first, second, rtol=1e-12, atol=1e-12)
        assert_close(first, third, rtol=1e-12, atol=1e-12)
