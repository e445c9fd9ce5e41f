"""Certificates of whole models, watching solves, and labels that are proven."""

import math
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gind
from gind.graph import Scaling


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
    assert len(certified.layers) == 1


@pytest.mark.parametrize("asked", [{}, {"return_solution": True}], ids=["output", "solution"])
@pytest.mark.parametrize("named", [False, True], ids=["by place", "by name"])
def test_a_layer_is_certified_however_it_is_called(asked: dict[str, bool], named: bool) -> None:
    x, edges = problem()
    graph = gind.Graph.from_edge_index(edges, len(x))
    layer = gind.Diffusion(5)
    arguments: tuple[Any, ...] = () if named else (x, graph)
    names: dict[str, Any] = {"graph": graph, "b": x} if named else {}
    certified = gind.certify_model(layer, lambda: layer(*arguments, **names, **asked))
    assert certified is not None
    _, solution = layer(x, graph, return_solution=True)
    (seen,) = certified.layers
    assert torch.equal(seen.distance, gind.certificate(layer, x, graph, solution).distance)
    assert not layer._forward_hooks, "it listens no longer"


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


def nearly_proven(scaling: Scaling, norm: bool | str, factor: float, head: nn.Linear) -> Tensor:
    """What is proven where the margin of label 0 over label 1 is `factor` times what the formula asks for.

    K = 0, so the exact equilibrium is 0 on any graph and a point z is off by ‖z‖.
    """
    torch.manual_seed(0)
    _, edges = problem(40)
    graph = gind.Graph.from_edge_index(edges, 40)
    options: dict[str, Any] = {"scaling": scaling, "output_norm": norm, "stop": gind.Stop(1e-6, 0), "throw": "ignore"}
    layer = gind.Diffusion(8, **options).double()
    nn.init.zeros_(layer.K)
    z = torch.randn(40, 8, dtype=torch.float64)
    s = scaling.vector(graph).double() if scaling.row else torch.ones(40, dtype=torch.float64)
    delta = s * z.norm()
    w, c = (head.weight[0] - head.weight[1]).detach(), float((head.bias[0] - head.bias[1]).detach())
    if norm:  # out = t w/‖w‖², so its scores differ by t and its root mean square is t/(‖w‖√h)
        length, root = float(w.norm()), math.sqrt(8)
        t = factor * (length + abs(c) / root) * delta / (1 + c / (length * root))
    else:
        t = factor * w.norm() * delta - c
    b = t[:, None] * w / w.square().sum() - s[:, None] * z
    _, solution = layer(b, graph, z0=z, return_solution=True)
    assert torch.equal(solution.value, z), "no step was made"
    return gind.proven_labels(layer, head, b, graph, solution)


@pytest.mark.parametrize("scaling", [gind.Symmetric(), gind.Row()], ids=repr)
@pytest.mark.parametrize("norm", [False, "node"])
@pytest.mark.parametrize("bias", [-0.3, 0.0, 0.3])
def test_a_label_is_proven_from_the_margin_of_the_formula_on(scaling: Scaling, norm: bool | str, bias: float) -> None:
    head = nn.Linear(8, 2).double()
    with torch.no_grad():
        head.bias.copy_(torch.tensor([bias, 0.0]))
    assert nearly_proven(scaling, norm, 1.001, head).all()
    assert not nearly_proven(scaling, norm, 0.999, head).any()


def test_the_margin_over_a_label_with_nearly_the_same_weights_is_exact() -> None:
    """Among many labels, where distances of rows by way of products of rows would be rounding alone."""
    head = nn.Linear(8, 40).double()
    with torch.no_grad():
        head.bias.zero_()
        head.bias[2:] = -100.0  # no rivals
        head.weight[2:] = head.weight[0]
        head.weight[1] = head.weight[0] + 1e-8 * torch.randn(8, dtype=torch.float64)
    assert nearly_proven(gind.Symmetric(), False, 1.001, head).all()
    assert not nearly_proven(gind.Symmetric(), False, 0.999, head).any()


def test_without_edges_every_strict_winner_is_proven() -> None:
    """Z = 0 exactly, so the certificate's distance is 0."""
    graph = gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3)
    layer, head = gind.Diffusion(2), nn.Linear(2, 2, bias=False)
    head.weight.data = torch.eye(2)
    b = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    _, solution = layer(b, graph, return_solution=True)
    assert gind.proven_labels(layer, head, b, graph, solution).tolist() == [True, True, False]
    said = torch.tensor([0, 0, 0])
    assert gind.proven_labels(layer, head, b, graph, solution, said).tolist() == [True, False, False]


def test_an_output_normalized_by_graph_proves_nothing() -> None:
    _, edges = problem()
    graph = gind.Graph.from_edge_index(edges, 30)
    layer = gind.Diffusion(8, output_norm="graph")
    b = torch.randn(30, 8)
    _, solution = layer(b, graph, return_solution=True)
    with pytest.raises(ValueError, match="normalized by graph"):
        gind.proven_labels(layer, nn.Linear(8, 2), b, graph, solution)
