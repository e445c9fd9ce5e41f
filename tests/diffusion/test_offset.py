"""What all nodes have in common has no differences along edges: it changes nothing, and costs no precision."""

import pytest
import torch
from cases import make_input, make_layer

import gind
from gind.graph import Scaling

SCALINGS: list[Scaling] = [gind.Row(), gind.Identity()]
OFFSETS = [0.3, 3.0, 300.0]


def graph(seed: int, nodes: int) -> gind.Graph:
    edges = torch.randint(nodes, (2, 5 * nodes // 2), generator=torch.Generator().manual_seed(seed))
    return gind.Graph.from_edge_index(edges, nodes)


def two_graphs() -> gind.Graph:
    """Their nodes take turns; a third has none."""
    edges = torch.randint(10, (2, 30), generator=torch.Generator().manual_seed(0))
    both = torch.cat([2 * edges, 2 * edges + 1], dim=1)
    return gind.Graph.from_edge_index(both, 20, batch=torch.arange(2).repeat(10), num_graphs=3)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("injection", ["shared", "separate"])
def test_an_offset_of_a_graph_changes_nothing(scaling: Scaling, injection: str, offset: float) -> None:
    layer = make_layer(3.0, scaling=scaling, injection=injection, output="flux", stop=gind.Stop(1e-12, 2000))
    b, offsets = make_input(20), offset * torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.0, 1.0]], dtype=torch.float64)
    plain = layer(b, two_graphs())
    moved = layer(b + offsets.repeat(10, 1), two_graphs())
    torch.testing.assert_close(moved, plain, rtol=0, atol=1e-9)


def test_the_injection_bias_changes_nothing_there() -> None:
    layer = make_layer(3.0, scaling=gind.Row(), injection="separate", injection_bias=True, stop=gind.Stop(1e-12, 2000))
    with_bias = layer(make_input(20), graph(0, 20))
    torch.nn.init.zeros_(layer.injection_offset)  # type: ignore[arg-type]  # it is there with a bias
    torch.testing.assert_close(layer(make_input(20), graph(0, 20)), with_bias)


def test_the_injection_bias_matters_where_nodes_are_scaled() -> None:
    layer = make_layer(3.0, scaling=gind.Symmetric(), injection="separate", injection_bias=True)
    with_bias = layer(make_input(20), graph(0, 20))
    torch.nn.init.zeros_(layer.injection_offset)  # type: ignore[arg-type]  # it is there with a bias
    assert not torch.allclose(layer(make_input(20), graph(0, 20)), with_bias, atol=1e-3)


@pytest.mark.parametrize("offset", OFFSETS[:2])
def test_a_solve_in_single_precision_that_converged_is_certified(offset: float) -> None:
    """The normalization makes the map steep, L is about 250; so errors that a common offset brings are large."""
    for seed in range(15):
        given = graph(seed, 60)
        norm = gind.FrozenNorm("layer", "after")
        layer = make_layer(2.5, 16, torch.float32, seed, scaling=gind.Row(), edge_norm=norm, stop=gind.Stop(1e-4, 2000))
        b = 0.02 * make_input(60, 16, torch.float32, seed) + offset
        with torch.no_grad():
            solution = layer(b, given, return_solution=True)[1]
        assert solution.converged
        assert gind.certificate(layer, b, given, solution).holds


@pytest.mark.parametrize("injection", ["shared", "separate"])
def test_gradients_do_not_see_an_offset(injection: str) -> None:
    stop = gind.Stop(1e-13, 2000)
    layer = make_layer(
        3.0, scaling=gind.Row(), injection=injection, output="flux", stop=stop, adjoint=gind.Implicit(stop)
    )
    gradients = []
    for offset in (0.0, 5.0):
        b = (make_input(20) + offset).requires_grad_()
        loss = (layer(b, two_graphs()) * make_input(20, seed=1)).sum()
        gradients.append(torch.autograd.grad(loss, [b, layer.K]))
    for plain, moved in zip(*gradients, strict=True):
        torch.testing.assert_close(moved, plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("given", [graph(0, 20), two_graphs()], ids=["one graph", "batch"])
def test_a_sum_that_overflows_changes_nothing(given: gind.Graph) -> None:
    layer, b = make_layer(0.1, 3, torch.float32, scaling=gind.Row()), torch.full((20, 3), 2e38)
    assert layer.bind(b, given)(torch.zeros_like(b)).isfinite().all()
