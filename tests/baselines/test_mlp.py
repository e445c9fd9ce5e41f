"""MLP against its equations in NumPy; and by name on graphs, with all that a run leaves."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_cases import TINY, command, write_molecules
from torch import Tensor
from torch.testing import assert_close

from gind.baselines.mlp import MLP
from gind.graph import Graph

BATCH = torch.tensor([0, 2, 0, 2, 2, 3, 0])  # graph 1 has no nodes
X = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).relu()
EDGES = torch.tensor([[0, 1, 3], [2, 3, 4]])
LAYERS = pytest.mark.parametrize("layers", [1, 2, 3])


def make(layers: int, **options: Any) -> MLP:
    torch.manual_seed(0)
    return MLP(5, 4, 3, layers, **options).double().eval()


def by_hand(model: MLP, x: Tensor, batch: Tensor | None) -> Tensor:
    """Scores for graphs, or for nodes if there is no batch."""
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    hidden, last = x.numpy(), len(model.layers) - 1
    for number in range(last):
        hidden = np.maximum(hidden @ state[f"layers.{number}.weight"].T + state[f"layers.{number}.bias"], 0)
    if batch is not None:
        members = [np.flatnonzero(batch.numpy() == graph) for graph in range(int(batch.max()) + 1)]
        hidden = np.stack([hidden[nodes].sum(axis=0) for nodes in members])
    return torch.from_numpy(hidden @ state[f"layers.{last}.weight"].T + state[f"layers.{last}.bias"])


@LAYERS
def test_scores_of_nodes(layers: int) -> None:
    model = make(layers)
    expected = by_hand(model, X, None)
    assert_close(model(X), expected)
    assert_close(model(X.to_sparse_csr()), expected)
    assert_close(model(X, EDGES, torch.rand(3), BATCH), expected)


@LAYERS
def test_scores_of_graphs(layers: int) -> None:
    model = make(layers, task="graph")
    expected = by_hand(model, X, BATCH)
    assert_close(model(X, EDGES, batch=BATCH), expected)
    assert_close(model(X.to_sparse_csr(), EDGES, torch.rand(3), BATCH), expected)
    assert_close(model(X, Graph.from_edge_index(EDGES, 7, batch=BATCH)), expected)
    assert_close(model(X), by_hand(model, X, torch.zeros_like(BATCH)))


@LAYERS
def test_weights_are_the_same_for_both_tasks(layers: int) -> None:
    nodes, graphs = make(layers), make(layers, task="graph")
    names = [f"layers.{number}.{part}" for number in range(layers) for part in ("weight", "bias")]
    assert list(nodes.state_dict()) == list(graphs.state_dict()) == names
    graphs.load_state_dict(nodes.state_dict())


@pytest.mark.parametrize("task", ["node", "graph"])
def test_dropout_is_for_training_alone(task: str) -> None:
    model = make(2, task=task, dropout=0.5)
    before = model(X, batch=BATCH)
    assert not torch.equal(model.train()(X, batch=BATCH), before)
    assert torch.equal(model.eval()(X, batch=BATCH), before)


def test_a_run_on_graphs_leaves_what_other_models_leave(tmp_path: Path) -> None:
    data, files = write_molecules(tmp_path / "data"), {}
    for name in ("mlp", "gin"):
        outcome = command(f"train mutag --data {data} {TINY} --model {name} --out {tmp_path / name}")
        assert outcome.code == 0, outcome
        files[name] = {path.name for path in (tmp_path / name).iterdir()}
    assert files["mlp"] == files["gin"]
    report = json.loads((tmp_path / "mlp" / "report.json").read_text())
    assert 0 <= report["test"]["accuracy"] <= 1
    assert command(f"predict {tmp_path / 'mlp'} --data {data} --threads 1").code == 0
    assert len((tmp_path / "mlp" / "predictions.csv").read_text().splitlines()) == 1 + 24
    assert command(f"evaluate {tmp_path / 'mlp'} --data {data} --threads 1").code == 0


@pytest.mark.parametrize("options", [{"num_layers": 0}, {"task": "edge"}])
def test_refusals(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        MLP(5, 4, 3, **options)
