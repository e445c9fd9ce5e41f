"""Gradients through the equilibrium: exact ones against finite differences, approximate ones against the exact."""

from typing import Any

import pytest
import torch
from cases import GRAPHS, SOLVERS, VARIANTS, make_input, make_layer, make_mask
from torch.testing import assert_close

import gind

TIGHT = gind.Stop(1e-13, 5000)
EXACT = gind.Implicit(gind.Stop(1e-13, 5000))


def loss_of(layer: gind.Diffusion, name: str) -> Any:
    """A scalar function of b and all parameters, with one fixed dropout mask."""
    graph = GRAPHS[name].graph()
    mask = make_mask(layer, make_input(GRAPHS[name].num_nodes))
    names = [key for key, _ in layer.named_parameters()]
    target = make_input(GRAPHS[name].num_nodes, seed=9)

    def output(b: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        def run(module: torch.nn.Module) -> torch.Tensor:
            assert isinstance(module, gind.Diffusion)
            fn = module.bind(b, graph, mask)
            return module.read(module.solve(fn).value, b, fn)

        wrapped = _Call(layer, run)
        values = {f"layer.{key}": value for key, value in zip(names, parameters, strict=True)}
        result: torch.Tensor = torch.func.functional_call(wrapped, values, ())
        return (result * target).sum() + result.square().sum()

    return output


class _Call(torch.nn.Module):
    """Lets `functional_call` run any function of a layer."""

    def __init__(self, layer: gind.Diffusion, run: Any) -> None:
        super().__init__()
        self.layer, self.run = layer, run

    def forward(self) -> torch.Tensor:
        result: torch.Tensor = self.run(self.layer)
        return result


def inputs_of(layer: gind.Diffusion, name: str) -> tuple[torch.Tensor, ...]:
    b = make_input(GRAPHS[name].num_nodes).requires_grad_()
    return b, *[p.detach().clone().requires_grad_() for p in layer.parameters()]


@pytest.mark.parametrize("name", ["weighted", "directed", "disconnected"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_implicit_gradient_is_exact(variant: str, name: str) -> None:
    layer = make_layer(2.0, solver=gind.NewtonCG(), stop=TIGHT, adjoint=EXACT, **VARIANTS[variant])
    assert torch.autograd.gradcheck(loss_of(layer, name), inputs_of(layer, name), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"edge_norm": gind.LiveNorm("layer"), "alpha": 0.05},
        {"edge_norm": gind.LiveNorm("instance", "before"), "alpha": 0.3},
        {"regularizer": gind.LaplacianStep(0.5), "alpha": 0.5},
        {"regularizer": gind.Decorrelation(0.1, 0.2), "alpha": 0.5, "edge_norm": gind.FrozenNorm()},
    ],
    ids=str,
)
def test_implicit_gradient_is_exact_without_energy(options: dict[str, Any]) -> None:
    layer = make_layer(0.8, solver=gind.Anderson(), stop=gind.Stop(1e-12, 3000), adjoint=EXACT, **options)
    b, *parameters = inputs_of(layer, "star")
    assert layer(b, GRAPHS["star"].graph(), return_solution=True)[1].converged
    assert torch.autograd.gradcheck(loss_of(layer, "star"), (b, *parameters), atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize(
    "adjoint", [gind.Phantom(400), gind.Phantom(400, damping=0.2), gind.Unrolled()], ids=["auto", "damped", "unrolled"]
)
@pytest.mark.parametrize("variant", ["plain", "row", "frozen instance", "dropout", "laplacian"])
def test_other_gradients_tend_to_the_implicit_one(variant: str, adjoint: gind.Phantom) -> None:
    gradients = []
    for choice in (EXACT, adjoint):
        layer = make_layer(1.5, stop=gind.Stop(1e-12, 2000), adjoint=choice, **VARIANTS[variant])
        inputs = inputs_of(layer, "weighted")
        gradients.append(torch.autograd.grad(loss_of(layer, "weighted")(*inputs), inputs))
    for exact, other in zip(*gradients, strict=True):
        assert_close(other, exact, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "adjoint", [EXACT, gind.Phantom(300), gind.Unrolled()], ids=["implicit", "phantom", "unrolled"]
)
def test_every_solver_works_with_every_gradient(solver: gind.Picard, adjoint: gind.Phantom) -> None:
    gradients = []
    for choice in ((gind.NewtonCG(), EXACT), (solver, adjoint)):
        layer = make_layer(1.5, stop=gind.Stop(1e-11, 1000), solver=choice[0], adjoint=choice[1])
        b = make_input(9).requires_grad_()
        layer(b, GRAPHS["weighted"].graph()).square().sum().backward()
        assert b.grad is not None
        assert layer.K.grad is not None
        gradients.append((b.grad, layer.K.grad))
    for exact, other in zip(*gradients, strict=True):
        assert_close(other, exact, atol=1e-5, rtol=1e-4)


def test_float32_gradient_is_close_to_the_float64_one() -> None:
    gradients = []
    for dtype in (torch.float32, torch.float64):
        layer = make_layer(3.0, stop=gind.Stop(1e-6, 2000), dtype=dtype)
        b = make_input(9, dtype=dtype).requires_grad_()
        layer(b, GRAPHS["weighted"].graph()).square().sum().backward()
        assert b.grad is not None
        gradients.append(b.grad.double())
    assert_close(gradients[0], gradients[1], atol=1e-4, rtol=1e-4)


def test_report_of_the_backward_solve() -> None:
    layer, b = make_layer(6.0, stop=TIGHT), make_input(9).requires_grad_()
    out, solution = layer(b, GRAPHS["simple"].graph(), return_solution=True)
    assert solution.gradient.status is None
    out.sum().backward()
    assert solution.gradient.status is gind.Status.CONVERGED
    assert solution.gradient.residual is not None
    assert float(solution.gradient.residual.max()) <= 1e-6
