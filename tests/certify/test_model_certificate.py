"""Certificates of whole models, watching solves, and labels that are proven."""

import math
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gind


def problem(n: int = 30, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 5, generator=generator), torch.randint(0, n, (2, 4 * n), generator=generator)


def model(**options: Any) -> gind.GIND:
    torch.manual_seed(1)
    return gind.GIND(5, 8, 3, **options)


def test_watch_sees_every_solve_in_order_and_also_nested() -> None:
    x, edges = problem()
    net = model(num_layers=2)
    with gind.watch() as outer:
        net(x, edges)
        with gind.watch() as inner:
            scores = net(x, edges)
    assert (len(outer), len(inner)) == (4, 2)
    assert outer[2:] == inner
    scores.sum().backward()
    assert all(solution.gradient.steps > 0 for solution in inner)
    net(x, edges)
    assert len(outer) == 4, "nobody watches any more"


def test_watch_is_per_thread() -> None:
    x, edges = problem()
    net = model()
    with gind.watch() as solutions:
        other = threading.Thread(target=lambda: net(x, edges))
        other.start()
        other.join()
    assert solutions == []


@pytest.mark.parametrize("layers", [1, 3])
def test_the_certificate_of_a_model_is_that_of_its_layers(layers: int) -> None:
    x, edges = problem()
    net = model(num_layers=layers, stop=gind.Stop(1e-5, 500), diffusion_dropout=0.5).train()
    certified = gind.certify_model(net, lambda: net(x, edges))
    assert certified is not None
    assert net.training, "the mode is as before"
    assert len(certified.layers) == layers
    assert certified.reached
    assert certified.proven
    assert certified.residual <= certified.tolerance == 1e-5
    assert certified.residual == max(float(c.residual.max()) for c in certified.layers)
    # the bound is true: a much better solve is no further away than it says
    net.eval()
    exact = model(num_layers=layers, stop=gind.Stop(1e-13, 5000)).double().eval()
    exact.load_state_dict(net.state_dict())
    with torch.no_grad(), gind.watch() as rough, gind.watch():
        net(x, edges)
    with torch.no_grad():
        graph = gind.Graph.from_edge_index(edges, len(x))
        _, best = exact.layers[0](net.encoder(x).double(), graph, return_solution=True)
    assert float((rough[0].value.double() - best.value).norm()) <= float(certified.layers[0].distance.max())


def test_what_has_no_energy_has_no_bound() -> None:
    x, edges = problem()
    net = model(edge_norm=gind.LiveNorm(), solver=gind.Picard(0.5), stop=gind.Stop(1e-3, 3))
    certified = gind.certify_model(net, lambda: net(x, edges))
    assert certified is not None
    assert certified.bound == math.inf
    assert not certified.proven
    assert certified.layers == ()
    assert not certified.reached
    assert certified.residual > 1e-3


def test_what_is_not_solved_has_no_certificate() -> None:
    net = nn.Linear(5, 2)
    assert gind.certify_model(net, lambda: net(torch.zeros(1, 5))) is None


def test_a_convolution_in_a_users_model_is_certified() -> None:
    x, edges = problem()
    conv = gind.GINDConv(5, 8)
    net = nn.ModuleDict({"conv": conv})
    certified = gind.certify_model(net, lambda: conv(x, edges))
    assert certified is not None
    assert certified.proven


@pytest.mark.parametrize("scaling", [gind.Symmetric(), gind.Row()], ids=repr)
@pytest.mark.parametrize("output", ["sum", "flux"])
@pytest.mark.parametrize("norm", [False, "node"])
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3])
def test_proven_labels_are_those_of_the_exact_equilibrium(
    scaling: object, output: str, norm: bool | str, tol: float
) -> None:
    torch.manual_seed(0)
    _, edges = problem(60)
    graph = gind.Graph.from_edge_index(edges, 60)
    options: dict[str, Any] = {"scaling": scaling, "output": output, "output_norm": norm}
    layer = gind.Diffusion(8, stop=gind.Stop(tol, 500), **options)
    head, b = nn.Linear(8, 4), torch.randn(60, 8)
    out, solution = layer(b, graph, return_solution=True)
    proven = gind.proven_labels(layer, head, b, graph, solution)
    layer.stop = gind.Stop(1e-13, 5000)
    exact = head.double()(layer.double()(b.double(), graph)).argmax(1)
    rough = head(out.double()).argmax(1)
    assert torch.equal(rough[proven], exact[proven])
    if tol == 1e-3:
        assert proven.double().mean() > 0.9, "and a good solve proves nearly all"
    if tol == 1e-1:
        assert not proven.all(), "while a poor one cannot"


def test_the_margin_is_the_formula() -> None:
    """One node, no edges: Z = 0 exactly, so the certificate's distance is 0 and every strict winner is proven."""
    graph = gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3)
    layer, head = gind.Diffusion(2), nn.Linear(2, 2, bias=False)
    head.weight.data = torch.eye(2)
    b = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    _, solution = layer(b, graph, return_solution=True)
    assert gind.proven_labels(layer, head, b, graph, solution).tolist() == [True, True, False]


def test_an_output_normalized_by_graph_proves_nothing() -> None:
    _, edges = problem()
    graph = gind.Graph.from_edge_index(edges, 30)
    layer = gind.Diffusion(8, output_norm="graph")
    b = torch.randn(30, 8)
    _, solution = layer(b, graph, return_solution=True)
    with pytest.raises(ValueError, match="normalized by graph"):
        gind.proven_labels(layer, nn.Linear(8, 2), b, graph, solution)
