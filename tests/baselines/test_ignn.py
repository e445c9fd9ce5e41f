"""IGNN against dense algebra in float64."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close
from training_problems import cycles_and_paths, many_labels, two_blocks

import gind
from gind.baselines.adjacency import AdjacencyKind, adjacency, spectral_radius
from gind.baselines.ignn import IGNN, project_rows
from gind.equilibrium import Stop
from gind.experiments.data import DataOptions
from gind.experiments.keys import keys_of, parse
from gind.experiments.models import KINDS, ModelEntry, defaults
from gind.graph import Graph
from gind.train import FitOptions

TIGHT = Stop(1e-12, 1000)
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 2], [1, 2, 3, 4, 5, 3, 5, 2]])  # one self-loop; node 6 is isolated
WEIGHTS = torch.tensor([1.0, 0.5, 2.0, 1.0, 3.0, 1.0, 0.25, 1.0], dtype=torch.float64)
X = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def dense_adjacency(edges: Tensor, n: int, weight: Tensor | None = None) -> NDArray[Any]:
    A = np.zeros((n, n))
    A[tuple(edges)] = 1.0 if weight is None else weight
    return np.maximum(A, A.T)


def dense_symmetric(edges: Tensor, n: int, weight: Tensor | None = None) -> Tensor:
    A = dense_adjacency(edges, n, weight) + np.eye(n)
    d = A.sum(axis=1)
    return torch.from_numpy(A / np.sqrt(np.outer(d, d)))


def make(scale: float = 4.0, **options: Any) -> IGNN:
    torch.manual_seed(0)
    model = IGNN(5, 4, 3, **{"dropout": 0.0, "stop": TIGHT, **options}).double()
    model.layers[0].get_parameter("W").data.mul_(scale)
    return model


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_adjacency_is_normalized_and_has_spectral_radius_one(weight: Tensor | None) -> None:
    A, dense = adjacency(Graph.from_edge_index(EDGES, 7, weight), torch.float64), dense_symmetric(EDGES, 7, weight)
    assert_close(A(torch.eye(7, dtype=torch.float64)), dense)
    assert_close(A.dense(), dense)
    assert np.abs(np.linalg.eigvals(dense.numpy())).max() == pytest.approx(1, abs=1e-12)


def test_spectral_radius_bounds_the_eigenvalues_of_each_graph() -> None:
    star = torch.stack([torch.zeros(5, dtype=torch.long), torch.arange(1, 6)])
    path = torch.stack([torch.arange(9), torch.arange(1, 10)])
    upper = torch.triu_indices(30, 30, 1)
    random = upper[:, torch.rand(upper.shape[1], generator=torch.Generator().manual_seed(3)) < 0.1]
    graphs = [(star, 6), (path, 10), (random, 30), (EDGES, 7), (torch.empty(2, 0, dtype=torch.long), 2)]
    sizes = torch.tensor([n for _, n in graphs])
    start = (sizes.cumsum(0) - sizes).tolist()
    edges = torch.cat([e + first for (e, _), first in zip(graphs, start, strict=True)], dim=1)
    together = Graph.from_edge_index(edges, 55, batch=torch.repeat_interleave(torch.arange(5), sizes))
    bounds, A = spectral_radius(together).tolist(), adjacency(together, torch.float64, "spectral").dense().numpy()
    for (e, n), first, bound in zip(graphs, start, bounds, strict=True):
        dense = dense_adjacency(e, n)
        exact = np.abs(np.linalg.eigvals(dense)).max()
        assert exact - 1e-12 <= bound <= 1.01 * exact + 1e-12
        np.testing.assert_allclose(A[first : first + n, first : first + n] * bound, dense, atol=1e-12)


def ball_by_bisection(w: NDArray[Any], radius: float) -> NDArray[Any]:
    low, high = 0.0, 0.0 if np.abs(w).sum() <= radius else float(np.abs(w).max())
    for _ in range(200):
        theta = (low + high) / 2
        low, high = (theta, high) if np.maximum(np.abs(w) - theta, 0).sum() > radius else (low, theta)
    return np.asarray(np.sign(w) * np.maximum(np.abs(w) - high, 0))


@pytest.mark.parametrize("radius", [0.1, 0.9, 3.0])
def test_projection_is_the_nearest_matrix_of_the_ball(radius: float) -> None:
    W = torch.randn(40, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 0.7
    W[0], W[1], W[2, :3] = 0.01, 5.0, 2.0  # inside; all entries equal; some of them equal
    projected = project_rows(W, radius)
    for row, found in zip(W.numpy(), projected.numpy(), strict=True):
        np.testing.assert_allclose(found, ball_by_bisection(row, radius), atol=1e-12)
    assert float(projected.abs().sum(dim=1).max()) <= radius * (1 + 1e-12)
    assert_close(project_rows(projected, radius), projected, atol=1e-14, rtol=0)


def test_projection_of_what_is_no_number_is_none_either() -> None:
    W = torch.tensor([[float("nan"), 1.0], [1e20, 1.0], [0.1, 0.2]])
    projected = project_rows(W, 0.9)
    assert bool(projected[0].isnan().any())
    assert_close(projected[2], W[2])
    assert float(projected[1].abs().sum()) <= 0.9


def test_linear_equilibrium_is_that_of_a_dense_solve() -> None:
    model = make(activation="identity", normalize=False).eval()
    layer: Any = model.layers[0]
    W, A = project_rows(layer.W, 0.9).detach(), dense_symmetric(EDGES, 7)
    b = A @ X @ layer.Omega.detach().T
    # vec of rows: vec(ÂZWᵀ) = (Â ⊗ W) vec(Z)
    Z = torch.linalg.solve(torch.eye(28, dtype=torch.float64) - torch.kron(A, W), b.reshape(-1)).reshape(7, 4)
    assert_close(model(X, EDGES), model.head(Z))


@pytest.mark.parametrize("kappa", [0.5, 0.98])
@pytest.mark.parametrize("kind", ["symmetric", "spectral"])
def test_relu_equilibrium_is_that_of_a_long_dense_iteration(kappa: float, kind: AdjacencyKind) -> None:
    model = make(kappa=kappa, adjacency=kind, normalize=False)
    layer: Any = model.layers[0]
    A = adjacency(Graph.from_edge_index(EDGES, 7), torch.float64, kind).dense()
    W = project_rows(layer.W, kappa).detach()
    b, Z = A @ X @ layer.Omega.detach().T, torch.zeros(7, 4, dtype=torch.float64)
    for _ in range(3000):
        Z = (A @ Z @ W.T + b).relu()
    with gind.watch() as solutions, torch.no_grad():
        scores = model(X, EDGES)
    assert_close(scores, model.head(Z), atol=1e-10, rtol=0)
    assert float((solutions[0].value - Z).norm()) <= float(solutions[0].bound)
    assert math.isfinite(solutions[0].bound) == bool(torch.linalg.matrix_norm(W, 2) < 1)


def test_training_projects_in_place_and_evaluation_leaves_the_parameter() -> None:
    model = make(stop=Stop(1e-8))
    layer: Any = model.layers[0]
    before = layer.W.detach().clone()
    assert float(before.abs().sum(dim=1).max()) > 0.9
    in_evaluation = model.eval()(X, EDGES)
    assert torch.equal(layer.W, before)
    with gind.watch() as solutions:
        in_training = model.train()(X, EDGES)
        assert float(layer.W.detach().abs().sum(dim=1).max()) <= 0.9 * (1 + 1e-12)
        assert_close(in_training, in_evaluation)
        # the second pass does not touch what the first one needs
        (in_training.sum() + model(X, EDGES).sum()).backward()
    for solution in solutions:
        assert solution.converged
        assert solution.gradient.residual is not None
        assert max(float(solution.residual), float(solution.gradient.residual)) <= 1e-8


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "skip": True, "normalize": False}], ids=["one", "two"])
@pytest.mark.parametrize("scale", [0.8, 4.0], ids=["inside", "projected"])
def test_gradients_are_those_of_finite_differences(options: dict[str, Any], scale: float) -> None:
    model = make(scale, **options).eval()
    names = [name for name, _ in model.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def scores(x: Tensor, *parameters: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x, EDGES))
        return result

    assert torch.autograd.gradcheck(scores, (X.clone().requires_grad_(), *values), atol=1e-6, fast_mode=True)


def test_a_dead_node_does_not_drown_the_gradients() -> None:
    model, x = make(), X.clone()
    x[6] = 0  # isolated and without features: its equilibrium is 0
    model(x, EDGES).square().sum().backward()
    assert all(p.grad is not None and float(p.grad.abs().max()) < 1e3 for p in model.parameters())


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("kind", ["symmetric", "spectral"])
def test_a_batch_is_its_graphs(task: str, kind: str) -> None:
    model = make(task=task, adjacency=kind, num_layers=2, head="mlp").eval()
    small, x = torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 5, dtype=torch.float64)
    edges, batch = torch.cat([EDGES, small + 7], dim=1), torch.tensor([0] * 7 + [1] * 3)
    apart = torch.cat([model(X, EDGES), model(x, small)])
    assert_close(model(torch.cat([X, x]), edges, batch=batch), apart, atol=1e-10, rtol=0)


@pytest.mark.parametrize("skip", [False, True])
def test_sparse_features_give_the_same_scores(skip: bool) -> None:
    model, x = make(skip=skip).eval(), X * (X > 0)
    assert_close(model(x.to_sparse_csr(), EDGES), model(x, EDGES), atol=1e-10, rtol=0)


GRAPHS = (cycles_and_paths(), 2, {"task": "graph", "head": "mlp"})
LABELS = (many_labels(), 3, {"num_layers": 2, "skip": True, "normalize": False, "adjacency": "spectral"})


@pytest.mark.parametrize(("data", "channels", "options"), [(two_blocks(), 4, {}), GRAPHS, LABELS])
def test_training_lowers_the_loss(data: Any, channels: int, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    report = gind.fit(IGNN(channels, 16, 3, **options, dropout=0.0), data, epochs=10, batch_size=8, lr=0.03)
    assert report.history[-1].loss < 0.9 * report.history[0].loss
    assert sum(record.open for record in report.history) == 0


@pytest.mark.parametrize("dataset", ["cora", "chains", "ppi", "mutag", "nci1"])
def test_defaults_are_keys_of_the_model_of_the_data_or_of_training(dataset: str) -> None:
    keys, options = ModelEntry(IGNN).keys, dict(defaults("ignn", dataset))
    model = {k: parse(k, keys[k].type, options.pop(k), KINDS) for k in list(options) if k in keys}
    DataOptions(**{k: options.pop(k) for k in list(options) if k in keys_of(DataOptions)})
    FitOptions(**options)
    assert isinstance(ModelEntry(IGNN).for_data("node", 5, 3, {**model, "hidden": 4}), IGNN)


@pytest.mark.parametrize(("options", "word"), [({"num_layers": 0}, "num_layers"), ({"kappa": 1.0}, "kappa")])
def test_refusals(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        IGNN(5, 4, 3, **options)
    with pytest.raises(ValueError, match="7 rows"):
        IGNN(5, 4, 3)(X.float(), Graph.from_edge_index(EDGES, 9))
