"""What all nodes have in common has no differences along edges: it changes nothing, and costs no precision."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from cases import GRAPHS, make_input, make_layer

import gind
from gind.diffusion.precision import centered
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


def one_part(seed: int) -> tuple[gind.Graph, torch.Tensor]:
    """60 nodes and one constant."""
    return graph(seed, 60), torch.full((60, 1), 3.0)


def two_parts(seed: int) -> tuple[gind.Graph, torch.Tensor]:
    """Two parts of 60 nodes, not connected, and a constant of each."""
    edges = torch.randint(60, (2, 150), generator=torch.Generator().manual_seed(seed))
    return gind.Graph.from_edge_index(torch.cat([edges, 60 + edges], dim=1), 120), sign(60)


def batch(seed: int) -> tuple[gind.Graph, torch.Tensor]:
    """The same as a batch of two graphs."""
    given, constants = two_parts(seed)
    edges = torch.stack([given.tail, given.head])
    return gind.Graph.from_edge_index(edges, 120, batch=torch.arange(2).repeat_interleave(60)), constants


def strangers(seed: int) -> tuple[gind.Graph, torch.Tensor]:
    """60 connected nodes around 0, and as many without edges far away, which must not matter."""
    edges = torch.randint(60, (2, 150), generator=torch.Generator().manual_seed(seed))
    return gind.Graph.from_edge_index(edges, 120), 0.5 - sign(60) / 2


def sign(count: int) -> torch.Tensor:
    return torch.cat([torch.ones(count, 1), -torch.ones(count, 1)])


@pytest.mark.parametrize("given", [one_part, two_parts, batch, strangers], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "options",
    [{}, {"injection": "separate", "injection_bias": True}, {"scaling": gind.Identity()}],
    ids=["row", "bias", "identity"],
)
def test_a_solve_in_single_precision_that_converged_is_certified(given: Any, options: dict[str, Any]) -> None:
    """The normalization makes the map steep, L is about 250; so errors that a common offset brings are large."""
    norm, stop = gind.FrozenNorm("layer", "after"), gind.Stop(1e-4, 2000)
    missed = 0
    for seed in range(6):
        where, constants = given(seed)
        nodes = where.num_nodes
        layer = make_layer(
            2.5, 16, torch.float32, seed, **{"scaling": gind.Row(), "edge_norm": norm, **options}, stop=stop
        )
        if isinstance(layer.scaling, gind.Identity):
            layer.K.data.mul_(0.3)  # ‖G‖² is about 20 then
        if layer.injection_offset is not None:
            layer.injection_offset.data.fill_(3.0)
        b = 0.02 * make_input(nodes, 16, torch.float32, seed) + constants
        with torch.no_grad():
            solution = layer(b, where, return_solution=True)[1]
        missed += not (solution.converged and gind.certificate(layer, b, where, solution).holds)
    assert missed == 0


@pytest.mark.parametrize("name", GRAPHS)
def test_differences_stay_and_what_rounding_errors_grow_with_is_least(name: str) -> None:
    """Σ d_i |b_i - c|² over connected nodes is least where Σ d_i (b_i - c) = 0."""
    where = GRAPHS[name].graph()
    b = make_input(where.num_nodes)
    less = centered(b, where)
    tail, head = where.tail, where.head
    torch.testing.assert_close(less[head] - less[tail], b[head] - b[tail])
    matrix = np.zeros((where.num_nodes, where.num_nodes))
    matrix[tail, head] = 1
    for part in nx.connected_components(nx.from_numpy_array(matrix)):
        nodes = sorted(part)
        total = (where.degree[nodes, None] * less[nodes]).sum(dim=0)
        torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-12)


def test_the_injection_bias_has_its_gradient_of_zero() -> None:
    """It changes nothing, but an optimizer finds it as it finds all others."""
    layer = make_layer(3.0, scaling=gind.Row(), injection="separate", injection_bias=True)
    layer(make_input(20), graph(0, 20)).square().sum().backward()
    assert layer.injection_offset is not None
    assert layer.injection_offset.grad is not None
    torch.testing.assert_close(layer.injection_offset.grad, torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-9)


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
