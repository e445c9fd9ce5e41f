"""Certificates: bounds that hold, and the paper's proximal identity where it applies."""

import contextlib
from typing import Any

import numpy as np
import pytest
import torch
from cases import GRAPHS, VARIANTS, as_numpy, make_input, make_layer, some_graph
from oracle import oracle
from torch.testing import assert_close

import gind
from gind.kernels.onecall import switched_off

ENDS: dict[str, dict[str, Any]] = {"plain": {}, "row": {"scaling": gind.Row()}, "own": {"ends": "own"}}


@pytest.mark.parametrize("steps", [2, 20, 2000])
@pytest.mark.parametrize("variant", [name for name in VARIANTS if "dropout" not in name])
def test_certificate_bounds_distance_and_energy_gap(variant: str, steps: int) -> None:
    case = GRAPHS["weighted"]
    layer = make_layer(6.0, dtype=torch.float32, stop=gind.Stop(1e-5, steps), **VARIANTS[variant])
    b = make_input(9, dtype=torch.float32)
    _, solution = layer(b, case.graph(), return_solution=True)
    certificate = gind.certificate(layer, b, case.graph(), solution)
    assert case.weight is not None
    exact = oracle(layer, as_numpy(b), case.edge_index.numpy(), as_numpy(case.weight))
    minimizer = exact.minimizer()
    distance = np.linalg.norm(as_numpy(solution.value) - minimizer)
    gap = exact.energy(as_numpy(solution.value)) - exact.energy(minimizer)
    assert distance <= float(certificate.distance)
    assert -1e-12 <= gap <= float(certificate.energy_gap) + 1e-12
    assert certificate.norm_K >= float(torch.linalg.matrix_norm(layer.K.double(), 2).detach()) * (1 - 1e-12)
    np.testing.assert_allclose(float(certificate.energy), exact.energy(as_numpy(solution.value)), rtol=1e-10)
    assert certificate.holds == bool((certificate.residual <= 1e-5).all())
    assert ("NOT reached" in str(certificate)) != certificate.holds


def test_certificate_is_taken_without_dropout_and_leaves_the_layer_alone() -> None:
    layer, graph, b = make_layer(dropout=0.5), GRAPHS["star"].graph(), make_input(9)
    layer.eval()
    _, solution = layer(b, graph, return_solution=True)
    layer.train()
    certificate = gind.certificate(layer, b, graph, solution)
    assert certificate.holds
    assert layer.training
    assert layer.K.dtype == torch.float64


def test_certificate_has_the_gradient_residual_after_backward() -> None:
    layer, graph, b = make_layer(), GRAPHS["star"].graph(), make_input(9).requires_grad_()
    out, solution = layer(b, graph, return_solution=True)
    assert gind.certificate(layer, b, graph, solution).gradient_residual is None
    out.sum().backward()
    certificate = gind.certificate(layer, b, graph, solution)
    assert certificate.gradient_residual is not None
    assert float(certificate.gradient_residual.max()) <= 1e-6
    assert "gradient residual" in str(certificate)


def test_energy_is_per_graph_and_minimal_at_the_equilibrium() -> None:
    batch = torch.tensor([0, 0, 0, 1, 1, 2])
    graph = gind.Graph.from_edge_index(torch.tensor([[0, 1, 3], [1, 2, 4]]), 6, batch=batch)
    layer, b = make_layer(3.0, stop=gind.Stop(1e-12, 3000)), make_input(6)
    _, solution = layer(b, graph, return_solution=True)
    best = gind.energy(layer, solution.value, b, graph)
    assert best.shape == (3,)
    for seed in range(10):
        other = gind.energy(layer, solution.value + 1e-3 * make_input(6, seed=seed), b, graph)
        assert bool((other >= best).all())
        assert bool((other[:2] > best[:2]).all())


@pytest.mark.parametrize("norm", [0.3, 1.0])
@pytest.mark.parametrize("variant", ["plain", "identity", "row", "wide"])
def test_proximal_identity_of_the_paper(variant: str, norm: float) -> None:
    layer, graph, b = make_layer(norm, **VARIANTS[variant]), GRAPHS["weighted"].graph(), make_input(9)
    z = make_input(9, seed=1)
    u, phi = gind.prox(layer, z, b, graph)
    assert_close(u, (z + layer.bind(b, graph)(z)) / 2)
    # u minimizes ½‖u - z‖² + φ(u): no other point of φ's domain does better. Points with known φ are prox values
    best = float(((u - z).square().sum() / 2 + phi).detach())
    for seed in range(30):
        other = z + 10.0 ** (seed % 6 - 4) * make_input(9, seed=seed + 2)
        v, phi_v = gind.prox(layer, other, b, graph)
        assert float(((v - z).square().sum() / 2 + phi_v).detach()) >= best - 1e-12


def test_proximal_identity_is_refused_beyond_its_condition() -> None:
    with pytest.raises(ValueError, match="‖K‖"):
        gind.prox(make_layer(1.5), make_input(9), make_input(9), GRAPHS["weighted"].graph())


@pytest.mark.parametrize("norm", [3.0, 10.0])
@pytest.mark.parametrize("variant", ["plain", "row", "own"])
@pytest.mark.parametrize("at_once", [True, False], ids=["one call", "step by step"])
def test_what_float32_says_it_reached_is_reached_in_float64(at_once: bool, variant: str, norm: float) -> None:
    graph, proven = some_graph(), 0
    for seed in range(40):
        layer = make_layer(norm, 16, torch.float32, seed, stop=gind.Stop(1e-5, 5000), **ENDS[variant])
        b = make_input(20, 16, torch.float32, seed)
        with torch.no_grad(), contextlib.nullcontext() if at_once else switched_off():
            _, solution = layer(b, graph, return_solution=True)
        if solution.converged:
            proven += 1
            assert gind.certificate(layer, b, graph, solution).holds
    assert proven >= 10
