"""What the layer promises beyond its bound."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from cases import GRAPHS, SOLVERS, VARIANTS, as_numpy, make_input, make_layer, make_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import oracle
from torch import nn
from torch.testing import assert_close

import gind
from gind.diffusion.compose import Composition
from gind.diffusion.map import DiffusionEnergy
from gind.diffusion.readout import normalize

TIGHT = gind.Stop(1e-11, 5000)


def bound_energy(layer: gind.Diffusion, name: str) -> tuple[DiffusionEnergy, torch.Tensor, torch.Tensor | None]:
    case = GRAPHS[name]
    b = make_input(case.num_nodes, layer.channels)
    mask = make_mask(layer, b)
    fn = layer.bind(b, case.graph(), mask)
    assert isinstance(fn, DiffusionEnergy)
    return fn, b, mask


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_map_energy_and_hessian_equal_the_equations(variant: str, name: str) -> None:
    layer, case = make_layer(**VARIANTS[variant]), GRAPHS[name]
    fn, b, mask = bound_energy(layer, name)
    weight = None if case.weight is None else as_numpy(case.weight)
    numpy_mask = None if mask is None else as_numpy(mask)
    reference = oracle(layer, as_numpy(b), case.edge_index.numpy(), weight, case.directed, numpy_mask)
    z = fn.project(make_input(case.num_nodes, layer.channels, seed=1))
    u = fn.project(make_input(case.num_nodes, layer.channels, seed=2))
    np.testing.assert_allclose(as_numpy(fn(z)), reference.f(as_numpy(z)), atol=1e-12)
    np.testing.assert_allclose(fn.value(z).item(), reference.energy(as_numpy(z)), rtol=1e-12)
    dense = reference.hessian(as_numpy(z))
    product = (dense @ as_numpy(u).reshape(-1)).reshape(u.shape)
    np.testing.assert_allclose(as_numpy(fn.hessian(z)(u)), product, atol=1e-11)
    eigenvalues = np.linalg.eigvalsh(dense)
    assert eigenvalues[0] >= 1 - 1e-9
    assert eigenvalues[-1] <= float(fn.smoothness.detach()) * (1 + 1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_majorizer_lies_above_the_energy(variant: str) -> None:
    fn, b, _ = bound_energy(make_layer(10.0, **VARIANTS[variant]), "weighted")
    for seed in range(20):
        z, u = (fn.project(make_input(len(b), seed=s)) for s in (seed, seed + 50))
        u = u * 10 ** (seed % 5 - 2)
        model = fn.value(z) + ((z - fn(z)) * u).sum() + (u * fn.majorizer(z)(u)).sum() / 2
        assert fn.value(z + u).item() <= model.item() * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("norm", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("variant", VARIANTS)
def test_energy_decreases_along_every_picard_step(variant: str, norm: float, fraction: float) -> None:
    fn, b, _ = bound_energy(make_layer(norm, **VARIANTS[variant]), "weighted")
    alpha = fraction * 2 / float(fn.smoothness.detach())
    z = fn.project(make_input(len(b), seed=3))
    values = [fn.value(z).item()]
    for _ in range(30):
        z = fn.relaxed(z, alpha)
        values.append(fn.value(z).item())
    slack = 1e-13 * abs(values[0])
    assert all(after <= before + slack for before, after in itertools.pairwise(values))


@pytest.mark.parametrize("scaling", [gind.Symmetric(), gind.Row(), gind.Identity()])
@pytest.mark.parametrize("name", ["simple", "weighted", "disconnected", "multigraph"])
def test_linear_case_equals_the_closed_form(name: str, scaling: gind.Symmetric) -> None:
    case = GRAPHS[name]
    layer = make_layer(3.0, activation="identity", scaling=scaling, solver=gind.NewtonCG(), stop=TIGHT)
    b = make_input(case.num_nodes)
    _, solution = layer(b, case.graph(), return_solution=True)
    weight = None if case.weight is None else as_numpy(case.weight)
    ref = oracle(layer, as_numpy(b), case.edge_index.numpy(), weight)
    # Z = -Ĝᵀw(ĜZKᵀ + V₀)K: one dense linear system for vec(Z)
    laplacian = ref.G.T @ (ref.w[:, None] * ref.G)
    system = np.eye(b.numel()) + np.kron(laplacian, ref.K.T @ ref.K)
    rhs = -(ref.G.T @ (ref.w[:, None] * ref.V0) @ ref.K).reshape(-1)
    exact = np.linalg.solve(system, rhs).reshape(b.shape)
    np.testing.assert_allclose(as_numpy(solution.value), exact, atol=1e-9)


@given(seed=st.integers(0, 10**6), nodes=st.integers(1, 12), edges=st.integers(0, 30))
@settings(max_examples=20, deadline=None)
def test_orientation_and_numbering_do_not_matter(seed: int, nodes: int, edges: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(nodes, (2, edges), generator=generator)
    weight = torch.rand(edges, generator=generator, dtype=torch.float64)
    b = make_input(nodes, seed=seed)
    layer = make_layer(3.0, stop=TIGHT, edge_norm=gind.FrozenNorm("instance", "after"))
    out = layer(b, gind.Graph.from_edge_index(edge_index, nodes, weight))
    # an orientation per unordered pair: flipping one of two repeats would turn their sum into a mean
    low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
    flip = torch.rand(nodes * nodes, generator=generator)[low * nodes + high] < 0.5
    base = torch.stack([low, high])
    first = layer(b, gind.Graph.from_edge_index(base, nodes, weight))
    flipped = layer(b, gind.Graph.from_edge_index(torch.where(flip, base.flip(0), base), nodes, weight))
    assert_close(flipped, first, atol=1e-9, rtol=0)
    order = torch.randperm(nodes, generator=generator)
    moved = torch.empty_like(b)
    moved[order] = b
    assert_close(
        layer(moved, gind.Graph.from_edge_index(order[edge_index], nodes, weight))[order], out, atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("variant", ["plain", "row", "frozen layer", "frozen instance", "laplacian", "own ends frozen"])
def test_batching_equals_solving_one_by_one(variant: str, solver: gind.Picard) -> None:
    names = ["simple", "disconnected", "no edges", "star", "multigraph"]
    layer = make_layer(3.0, solver=solver, stop=gind.Stop(1e-10, 3000), **VARIANTS[variant])
    inputs = [make_input(GRAPHS[name].num_nodes, seed=k) for k, name in enumerate(names)]
    offsets = np.cumsum([0, *[len(b) for b in inputs]])
    edge_index = torch.cat([GRAPHS[n].edge_index + int(o) for n, o in zip(names, offsets, strict=False)], dim=1)
    batch = torch.cat([torch.full((len(b),), k) for k, b in enumerate(inputs)])
    graph = gind.Graph.from_edge_index(edge_index, len(batch), batch=batch)
    together, solution = layer(torch.cat(inputs), graph, return_solution=True)
    assert solution.converged
    assert solution.residual.shape == solution.bound.shape == (len(names),)
    alone = torch.cat([layer(b, GRAPHS[n].graph()) for n, b in zip(names, inputs, strict=True)])
    assert_close(together, alone, atol=1e-8, rtol=0)


def test_dropout_draws_one_mask_per_forward_and_only_in_training() -> None:
    layer, graph, b = make_layer(dropout=0.5, stop=TIGHT), GRAPHS["star"].graph(), make_input(9)
    _, solution = layer(b, graph, return_solution=True)
    kept = solution.value != 0
    assert 0 < int(kept.sum()) < kept.numel()
    assert solution.converged  # a mask that changed between steps would not converge
    assert not torch.equal(layer(b, graph), layer(b, graph))
    layer.eval()
    assert torch.equal(layer(b, graph), layer(b, graph))
    assert bool((layer(b, graph, return_solution=True)[1].value != 0).all())


def test_output_options() -> None:
    graph, b = GRAPHS["star"].graph(), make_input(9)
    for scaling in (gind.Symmetric(), gind.Row()):
        layer = make_layer(scaling=scaling, stop=TIGHT)
        total, solution = layer(b, graph, return_solution=True)
        layer.output = "flux"
        assert_close(b + layer(b, graph), total)
        factor = scaling.vector(graph)[:, None] if scaling.row else 1.0
        assert_close(total, b + factor * solution.value)
        flux = as_numpy(layer(b, graph))
        for by in (True, "node", "graph"):
            layer.output_norm = by
            root = np.sqrt((flux**2).mean(axis=None if by == "graph" else 1, keepdims=True))
            np.testing.assert_allclose(as_numpy(layer(b, graph)), flux / root, rtol=1e-12)


def test_output_norm_keeps_the_sign_of_signals_that_fade() -> None:
    layer = make_layer(output="flux", output_norm=True)
    z = torch.tensor([[1e-300, -1e-300, 0.0]], dtype=torch.float64)
    fn, b, _ = bound_energy(layer, "no edges")
    out = layer.read(z.expand(len(b), 3), b, fn)
    assert_close(out[0], torch.tensor([1.5**0.5, -(1.5**0.5), 0.0], dtype=torch.float64))
    assert torch.equal(layer.read(0 * z.expand(len(b), 3), b, fn), torch.zeros_like(b))


@pytest.mark.parametrize("by", ["node", "graph"])
def test_output_norm_of_zero_rows_and_its_gradient(by: str) -> None:
    out = make_input(6) * torch.tensor([1.0, 0.0, 1e3, 1.0, 0.0, 0.0], dtype=torch.float64)[:, None]
    batch = torch.tensor([0, 0, 0, 1, 1, 2])
    graph = gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 6, batch=batch, num_graphs=4)
    normal = normalize(out, graph, by)
    assert bool((normal[[1, 4, 5]] == 0).all())
    ends = [0, 3, 5, 6] if by == "graph" else range(7)
    for first, last in itertools.pairwise(ends):
        assert_close(normal[first:last], normalize(out[first:last], bare(last - first), "graph"))
        assert_close(normalize(1e-200 * out, graph, by)[first:last], normal[first:last])
    out.requires_grad_()
    rows = [0, 2, 3]  # at zero there is no derivative; the one that is given must be finite
    loss = normalize(out, graph, by).mul(make_input(6, seed=1)).sum()
    (slope,) = torch.autograd.grad(loss, out)
    assert bool(slope.isfinite().all())
    whole = gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3, batch=batch[rows])
    assert torch.autograd.gradcheck(lambda x: normalize(x, whole, by), out.detach()[rows].requires_grad_(), rtol=1e-3)


def bare(nodes: int) -> gind.Graph:
    return gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), nodes)


@pytest.mark.parametrize("flux_channels", [None, 7, 2])
def test_K_begins_orthogonal_with_the_norm_asked(flux_channels: int | None) -> None:
    torch.manual_seed(0)
    layer = gind.Diffusion(4, flux_channels, K_norm=50.0)
    values = np.linalg.svd(layer.K.detach().numpy(), compute_uv=False)
    np.testing.assert_allclose(values, 50.0, rtol=1e-5)
    before = layer.K.detach().clone()
    layer.reset_parameters()
    assert not torch.equal(before, layer.K)


def test_heads_begin_with_their_share_of_the_norm() -> None:
    layer = gind.Diffusion(4, 6, ends="own", K_norm=50.0, head_norm=0.1)
    for K, norm in zip(layer.K.detach().view(2, 6, 4), (50.0, 5.0), strict=True):
        np.testing.assert_allclose(np.linalg.svd(K.numpy(), compute_uv=False), norm, rtol=1e-5)


@pytest.mark.parametrize("name", GRAPHS)
def test_own_ends_that_are_alike_are_the_difference(name: str) -> None:
    """On an undirected graph every edge then counts twice, once in each direction."""
    case = GRAPHS[name]
    alike = make_layer(stop=TIGHT, scaling=gind.Identity(), flux_gain=1.0 if case.directed else 2.0)
    own = make_layer(stop=TIGHT, scaling=gind.Identity(), ends="own")
    with torch.no_grad():
        own.K.copy_(alike.K.repeat(2, 1))
    b = make_input(case.num_nodes)
    assert_close(own(b, case.graph()), alike(b, case.graph()))


def test_an_edge_carries_what_its_head_injects_to_its_tail() -> None:
    """With K_h = 0 nothing comes to a head, and tails see their heads alone."""
    layer = make_layer(ends="own", injection="head", output="flux", stop=TIGHT)
    graph, b = gind.Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3, directed=True), make_input(3)
    with torch.no_grad():
        layer.K[3:] = 0
    out = layer(b, graph)
    assert out[:2].abs().min() > 0
    assert_close(out[2], torch.zeros_like(out[2]))
    b[2] += 1
    changed = ((layer(b, graph) - out).abs() > 1e-6).any(dim=1)
    assert changed.tolist() == [False, True, False]


def test_a_unit_injection_forgets_the_size_of_its_input() -> None:
    layer, graph, b = make_layer(injection_norm=True, stop=TIGHT), GRAPHS["weighted"].graph(), make_input(9)
    _, one = layer(b, graph, return_solution=True)
    _, other = layer(1e-3 * b, graph, return_solution=True)
    assert_close(one.value, other.value)


def test_warm_start_takes_fewer_steps() -> None:
    layer, graph, b = make_layer(6.0, stop=gind.Stop(1e-9, 3000)), GRAPHS["simple"].graph(), make_input(9)
    _, cold = layer(b, graph, return_solution=True)
    _, warm = layer(b * (1 + 1e-6), graph, z0=cold.value, return_solution=True)
    _, same = layer(b, graph, z0=cold.value, return_solution=True)
    assert same.steps == 0
    assert warm.steps < cold.steps / 2


@pytest.mark.parametrize("asked", [False, True], ids=["output", "solution"])
@pytest.mark.parametrize("wrap", [lambda layer: layer, lambda layer: Composition([layer])], ids=["layer", "composed"])
def test_autocast_leaves_the_solve_in_its_precision(wrap: Callable[[gind.Diffusion], nn.Module], asked: bool) -> None:
    """As after a linear layer that autocast ran in bfloat16: the equilibrium of just these numbers, in float32."""
    layer, graph = wrap(gind.Diffusion(8, K_norm=0.3)), gind.Graph.from_edge_index(torch.randint(0, 20, (2, 60)), 20)
    b = torch.randn(20, 8).bfloat16()
    expected = layer(b.float(), graph)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer(b, graph, return_solution=True)[0] if asked else layer(b, graph)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    found.sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())


def test_the_implicit_gradient_is_solved_in_its_precision_within_autocast() -> None:
    layer, graph = gind.Diffusion(8), gind.Graph.from_edge_index(torch.randint(0, 20, (2, 60)), 20)
    b = torch.randn(20, 8, requires_grad=True)
    out, solution = layer(b, graph, return_solution=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out.square().sum().backward()
    assert solution.gradient.status is gind.Status.CONVERGED
    assert layer.K.grad is not None
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(TypeError, match="int64"):
        layer(torch.ones(20, 8, dtype=torch.long), graph)


def test_the_bound_of_huge_features_is_a_number() -> None:
    layer = gind.Diffusion(4)
    for isolated in (0, 1):  # an isolated node must not make it 0·∞
        graph = gind.Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3 + isolated)
        _, solution = layer(1e25 * torch.randn(3 + isolated, 4), graph, return_solution=True)
        assert torch.isfinite(solution.bound).all()
