"""Elimination: the inverse it applies, and what it saves on chains."""

from typing import Any

import numpy as np
import pytest
import torch
from cases import GRAPHS, VARIANTS, as_numpy, make_input, make_layer, make_mask
from oracle import oracle
from problems import Ridge, random
from torch.testing import assert_close
from untyped import untyped

import gind
from gind.datasets import chains
from gind.diffusion.map import DiffusionEnergy

HELP = gind.Elimination()
ALIKE = [name for name, options in VARIANTS.items() if "ends" not in options]


@pytest.mark.parametrize("name", ["simple", "weighted", "directed", "multigraph", "disconnected", "no edges"])
@pytest.mark.parametrize("variant", ["identity", "row", "wide", "laplacian", "doubled", "unscaled"])
def test_it_is_the_inverse_of_the_linear_hessian(variant: str, name: str) -> None:
    options = {**VARIANTS[variant], "activation": "identity"}
    layer, case = make_layer(5.0, **options), GRAPHS[name]
    b, u = make_input(case.num_nodes), make_input(case.num_nodes, seed=1)
    fn = layer.bind(b, case.graph())
    assert isinstance(fn, DiffusionEnergy)
    weight = None if case.weight is None else as_numpy(case.weight)
    dense = oracle(layer, as_numpy(b), case.edge_index.numpy(), weight, case.directed).hessian(as_numpy(b))
    expected = np.linalg.solve(dense, as_numpy(u).reshape(-1)).reshape(u.shape)
    # a ratio near 1: every eigenvalue of KᵀK has its own factorization
    np.testing.assert_allclose(as_numpy(gind.Elimination(1 + 1e-12).build(fn)(u)), expected, atol=1e-10)


@pytest.mark.parametrize("variant", ALIKE)
def test_it_is_symmetric_and_definite_on_the_coordinates_in_use(variant: str) -> None:
    layer, case = make_layer(8.0, **VARIANTS[variant]), GRAPHS["weighted"]
    b = make_input(case.num_nodes)
    fn = layer.bind(b, case.graph(), make_mask(layer, b))
    assert isinstance(fn, DiffusionEnergy)
    inverse = HELP.build(fn)
    u, v = (fn.project(make_input(case.num_nodes, seed=seed)) for seed in (1, 2))
    assert_close((inverse(u) * v).sum(), (u * inverse(v)).sum())
    assert float((inverse(u) * u).sum()) > 0
    assert torch.equal(fn.project(inverse(u)), inverse(u))


@pytest.mark.parametrize("variant", ALIKE)
def test_answers_and_gradients_are_the_same(variant: str) -> None:
    graph, b = GRAPHS["weighted"].graph(), make_input(9)
    found = []
    for help_ in (None, HELP):
        options: dict[str, Any] = {
            **VARIANTS[variant],
            "solver": gind.NewtonCG(preconditioner=help_),
            "adjoint": gind.Implicit(gind.Stop(1e-12, 1000), help_),
        }
        layer = make_layer(8.0, stop=gind.Stop(1e-11, 200), **options)
        mask = make_mask(layer, b)
        fn = layer.bind(b, graph, mask)
        solution = layer.solve(fn)
        assert solution.converged
        loss = layer.read(solution.value, b, fn).mul(make_input(9, seed=3)).sum()
        found.append((solution.value.detach(), *torch.autograd.grad(loss, layer.K)))
    assert_close(found[0], found[1], atol=1e-7, rtol=1e-6)


def test_graphs_of_a_batch_have_their_own_strength() -> None:
    layer = make_layer(20.0, edge_norm=gind.FrozenNorm(), solver=gind.NewtonCG(preconditioner=HELP))
    edges = torch.tensor([[0, 1, 3, 4], [1, 2, 4, 5]])
    batch, b = torch.tensor([0, 0, 0, 1, 1, 1]), make_input(6) * torch.tensor([[1.0], [100.0]]).repeat_interleave(3, 0)
    together = layer(b, gind.Graph.from_edge_index(edges, 6, batch=batch))
    alone = [layer(part, gind.Graph.from_edge_index(edges[:, :2], 3)) for part in (b[:3], b[3:])]
    assert_close(together, torch.cat(alone), atol=1e-4, rtol=0)


def test_a_signal_reaches_the_end_of_a_long_chain_in_few_steps() -> None:
    data = chains(length=150, classes=2, chains=1, width=4)
    torch.manual_seed(0)
    options: dict[str, Any] = {"scaling": gind.Row(), "K_norm": 300.0, "stop": gind.Stop(1e-8, 50)}
    layer = gind.Diffusion(
        4, solver=gind.NewtonCG(preconditioner=HELP), adjoint=gind.Implicit(preconditioner=HELP), **options
    ).double()
    b = data.x.double()
    out, solution = layer(b, gind.Graph.from_edge_index(data.edge_index, len(b)), return_solution=True)
    assert solution.converged
    # with K = κQ every chain keeps the direction of its first node, however far
    first = out[[0, 150]].repeat_interleave(150, 0)
    assert_close(torch.cosine_similarity(out, first), torch.ones(300, dtype=torch.float64), atol=1e-2, rtol=0)
    out[149].sum().backward()
    assert solution.gradient.steps <= 5


def test_another_energy_is_refused() -> None:
    with pytest.raises(TypeError, match="Diffusion"):
        HELP.build(Ridge(random(3, 3), random(3, 1)))


def test_what_is_no_preconditioner_is_refused_at_once() -> None:
    for options in (gind.NewtonCG, gind.Implicit):
        with pytest.raises(TypeError, match=r"Elimination \(call it\)"):
            untyped(options)(preconditioner=gind.Elimination)
