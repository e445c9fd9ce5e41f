"""The problems the other tests rely on are what they say."""

import dataclasses

import pytest
import torch
from problems import CONTRACTIONS, ENERGIES, PLAIN, Maker, Ridge, batch, log_cosh, mirrored, quadratic, random
from solver_cases import name
from torch.testing import assert_close

from gind.equilibrium import Contraction, Energy

F64 = torch.float64


@pytest.mark.parametrize("maker", [*ENERGIES, *CONTRACTIONS, *PLAIN], ids=name)
def test_the_exact_solution_is_a_fixed_point(maker: Maker) -> None:
    case = maker(F64)
    assert bool((case.distance(case.fn(case.exact)) <= 100 * (case.slack + 1e-16)).all())


@pytest.mark.parametrize("maker", [quadratic, log_cosh, mirrored, batch], ids=name)
def test_the_map_is_a_gradient_step_and_the_hessian_its_derivative(maker: Maker) -> None:
    case = maker(F64)
    energy = case.fn
    assert isinstance(energy, Energy)
    z, u = (energy.project(random(*case.z0.shape, seed=seed)) for seed in (3, 4))
    z.requires_grad_()
    (gradient,) = torch.autograd.grad(energy.value(z).sum(), z, create_graph=True)
    assert_close(energy.project(gradient), z - energy(z))
    (product,) = torch.autograd.grad(gradient, z, u)
    assert_close(energy.project(product), energy.hessian(z)(u))


@pytest.mark.parametrize("maker", [quadratic, log_cosh, mirrored, batch], ids=name)
def test_the_majorizer_lies_above_the_energy(maker: Maker) -> None:
    case = maker(F64)
    energy = case.fn
    assert isinstance(energy, Energy)
    z = energy.project(random(*case.z0.shape, seed=3))
    for scale in (0.1, 1.0, 10.0):
        u = energy.project(scale * random(*case.z0.shape, seed=4))
        model = energy.value(z) + case.inner.dot(z - energy(z), u) + case.inner.dot(u, energy.majorizer(z)(u)) / 2
        assert bool((energy.value(z + u) <= model + 1e-10).all())


@pytest.mark.parametrize("maker", CONTRACTIONS, ids=name)
def test_a_contraction_contracts(maker: Maker) -> None:
    case = maker(F64)
    assert isinstance(case.fn, Contraction)
    for seed in range(20):
        z = case.exact + 0.1 * random(*case.z0.shape, seed=seed)
        assert float(case.distance(case.fn(z))) <= case.fn.factor * float(case.distance(z)) + case.slack


@pytest.mark.parametrize("maker", [quadratic, log_cosh, mirrored], ids=name)
def test_the_rounding_of_an_energy_covers_its_error(maker: Maker) -> None:
    energy = maker(torch.float32).fn
    assert isinstance(energy, Ridge)
    double = dataclasses.replace(energy, M=energy.M.double(), c=energy.c.double())
    for seed in range(20):
        z = energy.project(random(energy.M.shape[1], 2, seed=seed).float())
        error = float((energy(z).double() - double(z.double())).norm())
        assert 0 < error <= float(energy.rounding(z))
