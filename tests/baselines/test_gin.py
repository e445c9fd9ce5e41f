"""GIN against PyG's own; and what all models for graphs have in common, tested for each of them."""

import functools
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import GRAPHS, make_input
from torch import nn
from torch.testing import assert_close
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool, models
from training_problems import cycles_and_paths

from gind.baselines.dcnn import DCNN
from gind.baselines.dgcnn import DGCNN
from gind.baselines.fdgnn import FDGNN
from gind.baselines.gin import GIN
from gind.baselines.mlp import MLP
from gind.baselines.wl import WL
from gind.experiments.data import DataOptions
from gind.experiments.keys import keys_of
from gind.experiments.models import MODELS, ModelEntry
from gind.experiments.spec import make_spec
from gind.experiments.toml import parse_toml
from gind.train import FitOptions, fit, load_tensors, save_tensors

# name → a new model for two features, and how it is trained
CLASSES: dict[str, type[nn.Module]] = {
    "dcnn": DCNN,
    "dgcnn": DGCNN,
    "gin": GIN,
    "mlp": MLP,
    "fdgnn": FDGNN,
    "wl": WL,
}
BUILD: dict[str, Callable[[], nn.Module]] = {
    "dcnn": lambda: DCNN(2, 16, 2),
    "dgcnn": lambda: DGCNN(2, 16, 2, k=10, dropout=0.1),
    "gin": lambda: GIN(2, 8, 2, 3, dropout=0.0),
    "mlp": lambda: MLP(2, 16, 2, task="graph", dropout=0.0),
    "fdgnn": lambda: FDGNN(2, 30, 2, 2, degree=2.0),
    "wl": lambda: WL(2, 1, 2, 2, colors="uniform", normalize=False),
}
TRAIN: dict[str, dict[str, Any]] = {"dcnn": {"lr": 0.05}, "dgcnn": {"lr": 0.01}, "gin": {"lr": 0.01}}


@functools.cache
def trained(name: str) -> tuple[nn.Module, float]:
    torch.manual_seed(1)
    model = BUILD[name]()
    report = fit(model, cycles_and_paths(60), 0, epochs=20, batch_size=10, **TRAIN.get(name, {}))
    return model.eval(), report.best_value


@pytest.mark.parametrize("train_eps", [False, True])
def test_same_as_pyg(train_eps: bool) -> None:
    torch.manual_seed(0)
    model = GIN(3, 6, 2, 4, train_eps=train_eps).double()
    theirs = models.GIN(3, 6, 4, norm="batch_norm", jk="cat", train_eps=train_eps).double()
    theirs.lin = nn.Identity()
    names = {"convs.{}.nn.0": "convs.{}.nn.lins.0", "convs.{}.nn.1": "convs.{}.nn.norms.0.module"}
    names |= {"convs.{}.nn.3": "convs.{}.nn.lins.1", "norms.{}": "norms.{}.module"}
    for ours, their in names.items():
        for number in range(4):
            part = model.get_submodule(ours.format(number))
            for parameter in part.parameters():
                nn.init.normal_(parameter)
            theirs.get_submodule(their.format(number)).load_state_dict(part.state_dict())
    if train_eps:
        for number in range(4):
            model.get_parameter(f"convs.{number}.eps").data.fill_(number / 5)
            theirs.get_parameter(f"convs.{number}.eps").data.fill_(number / 5)
    case, x = GRAPHS["simple"], make_input(9)
    batch = torch.tensor([0] * 4 + [1] * 5)
    layers = [x, *theirs(x, case.edge_index).split(6, dim=1)]
    expected = sum(head(global_add_pool(z, batch)) for head, z in zip(model.heads, layers, strict=True))
    model.dropout = 0.0
    assert_close(model(x, case.edge_index, batch=batch), expected)
    by_node = GIN(3, 6, 2, 4, train_eps=train_eps, task="node", dropout=0.0).double()
    by_node.load_state_dict(model.state_dict())
    sums = by_node.train()(x, case.edge_index)
    assert sums.shape == (9, 2)


def test_refusals() -> None:
    for arguments, words in (({"num_layers": 0}, "num_layers"), ({"task": "edge"}, "'edge'")):
        with pytest.raises(ValueError, match=words):
            GIN(3, 4, 2, **arguments)


@pytest.mark.parametrize("name", CLASSES)
def test_learns_to_tell_cycles_from_paths(name: str) -> None:
    _, accuracy = trained(name)
    assert accuracy > 0.8


@pytest.mark.parametrize("name", CLASSES)
def test_numbering_of_nodes_does_not_matter(name: str) -> None:
    model, _ = trained(name)
    for graph in cycles_and_paths(8, seed=3).graphs:
        order = torch.randperm(len(graph.x))
        place = torch.argsort(order)
        edges = place[graph.edge_index][:, torch.randperm(graph.edge_index.shape[1])]
        assert_close(model(graph.x[order], edges), model(graph.x, graph.edge_index), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", CLASSES)
def test_batch_equals_graph_by_graph(name: str) -> None:
    model, _ = trained(name)
    graphs = cycles_and_paths(9, seed=2).graphs
    batch = Batch.from_data_list(list(graphs))
    together = model(batch.x, batch.edge_index, batch=batch.batch)
    assert together.shape == (9, 2)
    alone = torch.cat([model(graph.x, graph.edge_index) for graph in graphs])
    assert_close(together, alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CLASSES)
def test_sparse_features_are_the_same(name: str, weighted: bool) -> None:
    model, _ = trained(name)
    batch = Batch.from_data_list(list(cycles_and_paths(4, seed=3).graphs))
    x = batch.x * (batch.x > 1)
    weight = torch.rand(batch.num_edges, generator=torch.Generator().manual_seed(0)) if weighted else None
    for edges in (batch.edge_index, batch.edge_index[:, :0]):
        some = None if weight is None else weight[: edges.shape[1]]
        expected = model(x, edges, some, batch.batch)
        assert_close(model(x.to_sparse_csr(), edges, some, batch.batch), expected)


@pytest.mark.parametrize("name", CLASSES)
def test_file_holds_all_a_new_model_needs(name: str, tmp_path: Path) -> None:
    model, _ = trained(name)
    save_tensors(tmp_path / "file", model.state_dict(), {}, "weights")
    torch.manual_seed(99)
    twin = BUILD[name]()
    twin.load_state_dict(load_tensors(tmp_path / "file", "weights")[0])
    for graph in cycles_and_paths(4, seed=3).graphs:
        assert torch.equal(twin.eval()(graph.x, graph.edge_index), model(graph.x, graph.edge_index))


@pytest.mark.parametrize("name", CLASSES)
def test_initial_model_depends_on_the_seed_alone(name: str) -> None:
    states = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        states.append(BUILD[name]().state_dict())
    first, same, other = states
    assert all(torch.equal(first[key].nan_to_num(), same[key].nan_to_num()) for key in first)
    assert name == "wl" or any(not torch.equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_build_a_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, name, ModelEntry(CLASSES[name], tasks=("graph",)))
    text = resources.files("gind.experiments").joinpath("defaults", f"{name}.toml").read_text()
    known = {*MODELS[name].keys, *keys_of(FitOptions), *keys_of(DataOptions)}
    assert all(set(table) <= known for table in parse_toml(text, name).values())
    for dataset in ("mutag", "ptc_mr", "ptc", "cox2", "proteins", "nci1"):
        spec = make_spec({"dataset": dataset, "model": {"name": name}})
        assert isinstance(MODELS[name].for_data("graph", 7, 2, spec.model_options), CLASSES[name])
