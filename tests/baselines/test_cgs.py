"""CGS against its message passing written link by link, and one dense solve per head in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close
from training_problems import cycles_and_paths, two_blocks

import gind
from gind.baselines.cgs import CGS, _Links
from gind.equilibrium import Stop
from gind.experiments.keys import keys_of, parse
from gind.experiments.models import KINDS, ModelEntry, defaults
from gind.graph import Graph
from gind.train import FitOptions, Restarts

TIGHT = Stop(1e-12, 1000)
WEIGHTS = ["degree", "softmax"]
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 5, 3, 5]])  # node 6 is isolated
X = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def make(weights: str, **options: Any) -> CGS:
    torch.manual_seed(0)
    chosen = {"num_layers": 2, "heads": 3, "weights": weights, "stop": TIGHT, **options}
    model = CGS(5, 4, 2, **chosen).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def transition(model: CGS, edges: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """A as (heads, n, n), and b."""
    graph = Graph.from_edge_index(edges, len(x))
    links = _Links.of(graph, x.dtype)
    A, b = model.transition(x, graph, links)
    dense = A.new_zeros(A.shape[1], len(x), len(x))
    dense[:, links.target, links.source] = A.T
    return dense, b


def silu(v: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(v / (1 + np.exp(-v)))


def encoder_by_hand(model: CGS, edges: Tensor, weight: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """A as (heads, n, n), and b: each link j → i and each node for itself."""
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    links = [(j, i) for a, b in edges.t().tolist() for j, i in ((a, b), (b, a))]
    into = {i: [link for link in links if link[1] == i] for i in range(len(x))}
    feature = {link: np.array([w]) for link, w in zip(links, np.repeat(weight.numpy(), 2), strict=True)}
    node = dict(enumerate(x.numpy()))

    def mlp(name: str, j: int, i: int) -> NDArray[np.float64]:
        of_ends = p[f"{name}.source.weight"] @ node[j] + p[f"{name}.target.weight"] @ node[i]
        hidden = silu(p[f"{name}.edge.weight"] @ feature[j, i] + p[f"{name}.edge.bias"] + of_ends)
        return silu(p[f"{name}.out.weight"] @ hidden + p[f"{name}.out.bias"])

    def softmax(logits: dict[tuple[int, int], NDArray[np.float64]]) -> dict[tuple[int, int], NDArray[np.float64]]:
        return {(j, i): np.exp(v) / sum(np.exp(logits[link]) for link in into[i]) for (j, i), v in logits.items()}

    for layer in (f"layers.{number}" for number in range(len(model.layers))):
        new = {link: mlp(f"{layer}.edge", *link) for link in links}
        share = softmax({link: mlp(f"{layer}.attention", *link) for link in links})
        after = {}
        for i in node:
            total = sum((share[link] * new[link] for link in into[i]), np.zeros(len(p[f"{layer}.message.weight"][0])))
            hidden = p[f"{layer}.node.weight"] @ node[i] + p[f"{layer}.node.bias"]
            hidden = silu(hidden + p[f"{layer}.message.weight"] @ (total / max(len(into[i]), 1)))
            after[i] = silu(p[f"{layer}.out.weight"] @ hidden + p[f"{layer}.out.bias"])
        node, feature = after, new
    A, last = np.zeros((len(node[0]), len(x), len(x))), softmax(feature)
    for j, i in links:
        A[:, i, j] = last[j, i] if model.weights == "softmax" else np.clip(feature[j, i], 0, 1) / len(into[i])
    return torch.from_numpy(A), torch.from_numpy(np.stack(list(node.values())))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_encoder_is_its_message_passing(weights: str, layers: int) -> None:
    model, weight = make(weights, num_layers=layers, gamma=0.9), torch.linspace(0.2, 2.0, 7, dtype=torch.float64)
    A, b = encoder_by_hand(model, EDGES, weight, X)
    assert float((A - A.mT).abs().max()) > 0.1  # who hears and who is heard can be told apart
    z = torch.linalg.solve(torch.eye(7, dtype=torch.float64) - 0.9 * A, b.T[..., None])[..., 0].T
    with torch.no_grad(), gind.watch() as solutions:
        scores = model(X, EDGES, weight)
        assert_close(scores, model.head(z), atol=1e-9, rtol=0)
    assert_close(solutions[0].value, z, atol=1e-9, rtol=0)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_equilibrium_is_that_of_a_dense_solve_for_each_head(weights: str) -> None:
    model = make(weights, gamma=0.9)
    with torch.no_grad(), gind.watch() as solutions:
        scores = model(X, EDGES)
        A, b = transition(model, EDGES, X)
        z = torch.linalg.solve(torch.eye(7, dtype=torch.float64) - 0.9 * A, b.T[..., None])[..., 0].T
        assert_close(scores, model.head(z), atol=1e-10, rtol=0)
    assert_close(solutions[0].value, z, atol=1e-10, rtol=0)
    assert float(A.max()) > 0.1  # not all clipped away


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_map_contracts_by_gamma_whatever_the_parameters_are(weights: str) -> None:
    model = make(weights)
    for scale in (1.0, 10.0):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(scale)
            A, _ = transition(model, EDGES, X)
        assert float(A.min()) >= 0
        assert float(A.sum(dim=2).max()) <= 1 + 1e-12
        if weights == "softmax":
            assert_close(A.sum(dim=2)[:, :6], torch.ones(3, 6, dtype=torch.float64))
        assert float(A[:, 6].abs().max()) == 0  # no neighbors


@pytest.mark.parametrize("gamma", [0.2, 0.95])
def test_the_bound_of_the_distance_holds(gamma: float) -> None:
    model = make("softmax", gamma=gamma, stop=Stop(1e-2))
    star = torch.stack([torch.zeros(6, dtype=torch.long), torch.arange(1, 7)])
    with torch.no_grad(), gind.watch() as solutions:
        model(X, star)
        A, b = transition(model, star, X)
        z = torch.linalg.solve(torch.eye(7, dtype=torch.float64) - gamma * A, b.T[..., None])[..., 0].T
    (solution,) = solutions
    distance, bound = float((solution.value - z).norm()), float(solution.bound)
    assert distance <= bound
    # the column of the center has sum 6
    assert (bound < torch.inf) == (gamma * 6**0.5 < 1)
    if bound < torch.inf:
        assert float(torch.linalg.matrix_norm(gamma * A, 2).max()) < 1


@pytest.mark.parametrize("weights", WEIGHTS)
def test_gradients_are_those_of_finite_differences(weights: str) -> None:
    model = make(weights, task="graph", num_layers=1)
    names = [name for name, _ in model.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def scores(x: Tensor, *parameters: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x, EDGES))
        return result

    assert torch.autograd.gradcheck(scores, (X.clone().requires_grad_(), *values), atol=1e-6, fast_mode=True)
    model(X, EDGES).sum().backward()
    edge_mlp: Any = model.layers[-1].edge
    assert float(edge_mlp.out.weight.grad.abs().max()) > 0


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_batch_is_its_graphs(task: str, weights: str) -> None:
    model = make(weights, task=task)
    small, x = torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 5, dtype=torch.float64)
    batch = torch.tensor([0] * 7 + [1] * 3)
    with gind.watch() as solutions:
        together = model(torch.cat([X, x]), torch.cat([EDGES, small + 7], dim=1), batch=batch)
    assert solutions[0].residual.shape == (2,)
    assert_close(together, torch.cat([model(X, EDGES), model(x, small)]), atol=1e-9, rtol=0)


def test_sparse_features_and_numbering_and_direction_do_not_matter() -> None:
    model, x = make("degree"), X * (X > 0)
    scores = model(x, EDGES)
    assert_close(model(x.to_sparse_csr(), EDGES), scores, atol=1e-9, rtol=0)
    assert_close(model(x, EDGES.flip(0)), scores, atol=1e-9, rtol=0)
    order = torch.randperm(7)
    number = torch.empty_like(order)
    number[order] = torch.arange(7)
    assert_close(model(x[order], number[EDGES]), scores[order], atol=1e-9, rtol=0)


def test_edge_weights_are_features_of_the_edges() -> None:
    model = make("softmax")
    assert_close(model(X, EDGES, torch.ones(7)), model(X, EDGES))
    assert not torch.allclose(model(X, EDGES, torch.arange(1.0, 8)), model(X, EDGES))


def test_a_graph_without_edges_has_its_bias_as_equilibrium() -> None:
    model, none = make("softmax"), torch.empty(2, 0, dtype=torch.long)
    _, b = transition(model, none, X)
    assert_close(model(X, none), model.head(b))


def test_no_nodes_have_no_scores() -> None:
    assert make("softmax")(X[:0], torch.empty(2, 0, dtype=torch.long)).shape[0] == 0


def test_solves_are_seen_and_reach_their_tolerance() -> None:
    torch.manual_seed(0)
    data, model = two_blocks(), CGS(4, 16, 2)
    with gind.watch() as solutions:
        model(data.x, data.edge_index).sum().backward()
    (solution,) = solutions
    assert solution.converged
    assert float(solution.residual) <= 1e-5
    assert solution.gradient.residual is not None
    assert float(solution.gradient.residual) <= 1e-5


@pytest.mark.parametrize("weights", WEIGHTS)
def test_training_lowers_the_loss(weights: Any) -> None:
    torch.manual_seed(0)
    model = CGS(2, 16, 2, 2, task="graph", heads=8, weights=weights)
    report = gind.fit(model, cycles_and_paths(), epochs=10, batch_size=8, lr=0.03)
    assert report.history[-1].loss < 0.9 * report.history[0].loss
    assert sum(record.open for record in report.history) == 0


def test_defaults_are_keys_of_the_model_or_of_training() -> None:
    keys, options = ModelEntry(CGS).keys, dict(defaults("cgs", "mutag"))
    model = {k: parse(k, keys[k].type, options.pop(k), KINDS) for k in list(options) if k in keys}
    fit = keys_of(FitOptions)
    assert FitOptions(**{k: parse(k, fit[k].type, v, KINDS) for k, v in options.items()}).schedule == Restarts()
    assert isinstance(ModelEntry(CGS).for_data("graph", 5, 3, model), CGS)


@pytest.mark.parametrize("options", [{"num_layers": 0}, {"heads": 0}, {"gamma": 1.0}])
def test_refusals(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        CGS(5, 4, 3, **options)
