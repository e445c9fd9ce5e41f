"""FDGNN: the fixed point, its bound, and the ridge regression."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import GRAPHS, Case, make_input
from real_data import ROOT, need
from sklearn.linear_model import Ridge
from torch.testing import assert_close
from training_problems import cycles_and_paths

import gind
from gind.baselines.fdgnn import FDGNN, ridge_path
from gind.experiments import make_spec, run
from gind.experiments.artefact import load_artefact
from gind.experiments.models import MODELS, ModelEntry
from gind.train import Problem


def reservoir(**options: Any) -> FDGNN:
    torch.manual_seed(0)
    return FDGNN(3, 12, 2, **{"tol": 1e-12, "max_steps": 3000, **options}).double()


def adjacency(case: Case) -> np.ndarray:
    A = np.zeros((case.num_nodes, case.num_nodes))
    weight = np.ones(case.edge_index.shape[1]) if case.weight is None else case.weight.numpy()
    np.add.at(A, (case.edge_index[1].numpy(), case.edge_index[0].numpy()), weight)
    return A


@pytest.mark.parametrize("stability", ["norm", "radius"])
@pytest.mark.parametrize("name", GRAPHS)
def test_fixed_point_is_where_long_iteration_ends(name: str, stability: str) -> None:
    case, model = GRAPHS[name], reservoir(stability=stability, degree=12.0)
    u = make_input(case.num_nodes)
    state, A = u.numpy(), adjacency(case)
    for level in range(3):
        w_in, w = (model.get_buffer(f"{key}_{level}").numpy() for key in ("w_in", "w"))
        z = np.zeros((case.num_nodes, 12))
        for _ in range(600):
            z = np.tanh(state @ w_in.T + A @ z @ w.T)
        state = z
    found = model.embed(u, case.edge_index, case.weight)
    assert_close(found, torch.from_numpy(state.sum(axis=0, keepdims=True)), atol=1e-9, rtol=1e-9)


def test_readout_sees_random_units_of_the_sums() -> None:
    case, x = GRAPHS["simple"], make_input(9)
    plain, expanded = reservoir(degree=12.0), reservoir(degree=12.0, expansion=40)
    w = expanded.get_buffer("w_out").numpy()
    assert np.linalg.norm(w, 2) == pytest.approx(1.0)
    expected = np.tanh(plain.embed(x, case.edge_index).numpy() @ w.T)
    np.testing.assert_allclose(expanded.embed(x, case.edge_index).numpy(), expected, atol=1e-12)
    assert expanded(x, case.edge_index).shape == (1, 2)


def test_sparse_features_without_weights() -> None:
    case, x, model = GRAPHS["simple"], make_input(9).relu(), reservoir(degree=12.0)
    assert_close(model(x.to_sparse_csr(), case.edge_index), model(x, case.edge_index))


def test_watch_sees_solves_that_are_proven() -> None:
    case, x = GRAPHS["simple"], make_input(9)
    degree = float(adjacency(case).sum(axis=1).max())
    rough, exact = reservoir(degree=degree, factor=0.95, tol=1e-2), reservoir(degree=degree, factor=0.95)
    with gind.watch() as solutions:
        rough(x, case.edge_index)
        exact(x, case.edge_index)
    assert len(solutions) == 6
    assert all(solution.converged for solution in solutions)
    # the first levels solve the same problem
    distance = float((solutions[0].value - solutions[3].value).norm())
    assert 0 < distance <= float(solutions[0].bound)


@pytest.mark.parametrize("connections", [1, 3, 40])
def test_reservoir_is_sparse_and_contracts(connections: int) -> None:
    case = GRAPHS["simple"]
    A = adjacency(case)
    model = reservoir(degree=float(A.sum(axis=1).max()), factor=0.8, connections=connections, input_scale=0.5)
    for level in range(3):
        w_in, w = (model.get_buffer(f"{key}_{level}").numpy() for key in ("w_in", "w"))
        assert ((w != 0).sum(axis=1) == min(connections, 12)).all()
        assert np.linalg.norm(w_in, 2) == pytest.approx(0.5)
        assert np.linalg.norm(A, 2) * np.linalg.norm(w, 2) <= 0.8 + 1e-9
    radius = reservoir(stability="radius", degree=2.0, factor=0.6)
    assert abs(np.linalg.eigvals(radius.get_buffer("w_1").numpy())).max() == pytest.approx(0.3)


@pytest.mark.parametrize("shape", [(30, 5), (8, 20)])
def test_ridge_path_is_that_of_sklearn(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=shape) + 3, generator.normal(size=(shape[0], 2))
    strengths = (1e-3, 1.0, 100.0)
    for strength, (weight, bias) in zip(
        strengths, ridge_path(torch.from_numpy(x), torch.from_numpy(y), strengths), strict=True
    ):
        ridge = Ridge(alpha=strength, solver="svd").fit(x, y)
        np.testing.assert_allclose(weight.numpy(), ridge.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(bias.numpy(), ridge.intercept_, rtol=1e-8, atol=1e-10)


def test_readout_is_the_ridge_regression_best_on_validation() -> None:
    torch.manual_seed(0)
    model, dataset = FDGNN(2, 20, 2, 2, degree=2.0).double(), cycles_and_paths(60)
    for graph in dataset.graphs:
        graph.x = graph.x.double()
        graph.y = graph.y if torch.rand(()) > 0.2 else 1 - graph.y  # noise, so that strength matters
    problem = Problem.of(dataset, dataset.split(0), 7)
    model.fit_directly(problem.train, problem.val)
    sets = []
    for index in (dataset.split(0).train, dataset.split(0).val):
        graphs = [dataset.graphs[i] for i in index.tolist()]
        inputs = torch.cat([model.embed(graph.x, graph.edge_index) for graph in graphs]).numpy()
        sets.append((inputs, np.array([int(graph.y) for graph in graphs])))
    (x, y), (val_x, val_y) = sets
    ridges = [Ridge(alpha=10.0**power, solver="svd").fit(x, 2 * np.eye(2)[y] - 1) for power in range(-6, 5)]
    accuracies = [(ridge.predict(val_x).argmax(axis=1) == val_y).mean() for ridge in ridges]
    chosen = round(float(model.get_buffer("strength").log10())) + 6
    assert len(set(accuracies)) > 1
    assert accuracies[chosen] == max(accuracies)
    np.testing.assert_allclose(model.readout.weight.detach().numpy(), ridges[chosen].coef_, rtol=1e-3, atol=1e-3)


def test_run_and_artefact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("mutag")
    monkeypatch.setitem(MODELS, "fdgnn", ModelEntry(FDGNN, tasks=("graph",)))
    spec = make_spec({"dataset": "mutag", "model": {"name": "fdgnn"}})
    outcome = run(spec, tmp_path, root=ROOT)
    assert outcome.fit.stopped_by == "fit_directly"
    assert outcome.report["training"]["unsolved"] == 0
    assert outcome.report["test"]["accuracy"] > outcome.report["majority"]
    assert float(load_artefact(tmp_path).model.get_buffer("strength")) > 0


def test_refusals() -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"task": "node"}, "graphs"),
        ({"num_layers": 0}, "num_layers"),
        ({"connections": 0}, "connections"),
        ({"factor": 1.0}, "factor"),
        ({"degree": 0.0}, "degree"),
        ({"stability": "none"}, "'radius'"),
    ]
    for arguments, words in bad:
        with pytest.raises(ValueError, match=words):
            FDGNN(3, 4, 2, **arguments)
