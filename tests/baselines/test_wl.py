"""The WL kernel: colors against networkx, PyG and Python's integers; the machine against scikit-learn's."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from real_data import ROOT, need
from sklearn.svm import SVC
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import WLConv

from gind.baselines.wl import WL, initial_colors, refine
from gind.datasets import Dataset, Split
from gind.experiments import make_spec, run
from gind.experiments.artefact import load_artefact
from gind.experiments.models import MODELS, ModelEntry
from gind.train import Part, evaluate, fit, make_parts


def random_graph(seed: int, nodes: int = 14, labels: int = 3, classes: int = 2) -> Data:
    """A graph with labelled nodes; its class is the label that most of them have."""
    graph = nx.gnp_random_graph(nodes, 0.15, seed=seed)
    edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    label = torch.randint(labels, (nodes,), generator=torch.Generator().manual_seed(seed))
    label[: nodes // 2] = seed % classes
    both = torch.cat([edges, edges.flip(0)], dim=1)
    return Data(x=F.one_hot(label, labels).float(), edge_index=both, y=torch.tensor([seed % classes]))


def partition(colors: Any) -> list[int]:
    """Each color by the number of its first occurrence."""
    seen: dict[Any, int] = {}
    return [seen.setdefault(color, len(seen)) for color in colors]


def dataset(classes: int, count: int = 60) -> Dataset:
    graphs = tuple(random_graph(seed, classes=classes, labels=3) for seed in range(count))
    index = torch.arange(count)
    split = Split(index[: count // 2], index[count // 2 : -10], index[-10:])
    return Dataset("random", "graph", "accuracy", graphs, tuple(map(str, range(classes))), (split,))


def splitmix64(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_colors_are_those_of_python_integers() -> None:
    assert splitmix64(1234567) == 6457827717110365317  # the published test value
    x = torch.tensor([[0.0, 1.5, -2.0], [0.0, 0.0, 0.0], [-0.0, 1.5, -2.0]])
    bits = x.double().numpy().view(np.uint64)
    colors = []
    for row in range(3):
        terms = [splitmix64((int(bits[row, j]) + splitmix64(j)) % 2**64) for j in range(3) if x[row, j] != 0]
        colors.append(splitmix64(sum(terms) % 2**64))
    found = initial_colors(x)
    assert [int(color) % 2**64 for color in found] == colors
    edge_index = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 1, 1]])
    for node, color in enumerate(refine(found, edge_index).tolist()):
        around = sum(splitmix64(colors[u]) for u, v in edge_index.T.tolist() if v == node)
        assert color % 2**64 == splitmix64((splitmix64(colors[node]) + splitmix64(around % 2**64)) % 2**64)


@pytest.mark.parametrize("seed", range(8))
def test_partition_is_that_of_networkx_and_pyg(seed: int) -> None:
    data, other = random_graph(seed), random_graph(seed + 100)
    batch = Batch.from_data_list([data, other])
    graph = nx.Graph(batch.edge_index.T.tolist())
    graph.add_nodes_from((v, {"label": str(int(row.argmax()))}) for v, row in enumerate(batch.x))
    hashes = nx.weisfeiler_lehman_subgraph_hashes(graph, node_attr="label", iterations=4)
    ours, theirs = initial_colors(batch.x), batch.x
    for number in range(4):
        ours, theirs = refine(ours, batch.edge_index), WLConv()(theirs, batch.edge_index)
        assert partition(ours.tolist()) == partition(theirs.tolist())
        assert partition(ours.tolist()) == partition(hashes[v][number] for v in range(batch.num_nodes))


def test_a_color_means_the_same_in_every_graph_and_every_batch() -> None:
    data = random_graph(3)
    batch = Batch.from_data_list([random_graph(1), data])
    alone = refine(refine(initial_colors(data.x), data.edge_index), data.edge_index)
    together = refine(refine(initial_colors(batch.x), batch.edge_index), batch.edge_index)
    assert torch.equal(together[14:], alone)


def pyg_gram(graphs: list[Data], rounds: int, normalize: bool) -> np.ndarray:
    """The kernel of all graphs, by PyG's hash maps."""
    batch = Batch.from_data_list(graphs)
    color: Tensor = batch.x.argmax(dim=1)
    histograms = [F.one_hot(color).new_zeros(len(graphs), 3).index_put((batch.batch, color), torch.tensor(1), True)]
    for _ in range(rounds):
        conv = WLConv()
        color = conv(color, batch.edge_index)
        histograms.append(conv.histogram(color, batch.batch))
    phi = torch.cat(histograms, dim=1).double().numpy()
    phi = phi / np.linalg.norm(phi, axis=1, keepdims=True) if normalize else phi
    gram: np.ndarray = phi @ phi.T
    return gram


@pytest.mark.parametrize("normalize", [True, False])
def test_scores_are_those_of_a_machine_with_the_kernel(normalize: bool) -> None:
    data = dataset(2)
    model = WL(3, 1, 2, 3, normalize=normalize)
    fit(model, data, 0)
    graphs, train = list(data.graphs), slice(0, 30)
    gram = pyg_gram(graphs, 3, normalize)
    y = np.array([int(graph.y) for graph in graphs])
    machine = SVC(C=float(model.get_buffer("cost")), kernel="precomputed").fit(gram[train, train], y[train])
    batch = Batch.from_data_list(graphs)
    scores = model(batch.x, batch.edge_index, batch=batch.batch)
    expected = machine.decision_function(gram[:, train])
    np.testing.assert_allclose(scores[:, 1].numpy(), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores[:, 0].numpy(), -expected, rtol=1e-4, atol=1e-4)


def test_three_classes_are_learned_one_against_the_rest() -> None:
    data = dataset(3, 90)
    model = WL(3, 1, 3, 2)
    assert fit(model, data, 0).best_value > 0.8
    assert model.weight.shape == (len(model.colors), 3)
    assert bool((model.colors[1:] > model.colors[:-1]).all())


def test_classes_that_are_rare_or_missing() -> None:
    data = dataset(2)
    parts = make_parts(data, torch.arange(20), 1)
    one = [Part(part.data, torch.tensor([1])) for part in parts]
    model = WL(3, 1, 3)
    model.fit_directly(one, ())
    assert model(parts[0].data.x, parts[0].data.edge_index).argmax() == 1
    rare = [Part(part.data, torch.tensor([2 if number == 0 else 0])) for number, part in enumerate(parts)]
    model.fit_directly(rare, ())
    assert evaluate(model, rare, "graph", "accuracy").value >= 0.95


def test_batches_train_as_single_graphs_do() -> None:
    data, models = dataset(2), (WL(3, 1, 2), WL(3, 1, 2))
    for model, size in zip(models, (1, 7), strict=True):
        torch.manual_seed(0)
        model.fit_directly(make_parts(data, torch.arange(30), size), ())
    for key, value in models[0].state_dict().items():
        torch.testing.assert_close(models[1].state_dict()[key], value)


def test_run_and_artefact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("mutag")
    monkeypatch.setitem(MODELS, "wl", ModelEntry(WL, tasks=("graph",)))
    spec = make_spec({"dataset": "mutag", "model": {"name": "wl"}, "layers": 2})
    outcome = run(spec, tmp_path, root=ROOT)
    assert outcome.report["test"]["accuracy"] > outcome.report["majority"]
    assert run(spec, tmp_path, root=ROOT, resume=True).report["test"] == outcome.report["test"]
    assert len(load_artefact(tmp_path).model.get_buffer("colors")) > 100


def test_refusals() -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"task": "node"}, "graphs"),
        ({"num_layers": -1}, "num_layers"),
        ({"colors": "none"}, "'uniform'"),
        ({"inner_folds": 1}, "inner_folds"),
    ]
    for arguments, words in bad:
        with pytest.raises(ValueError, match=words):
            WL(3, 1, 2, **arguments)
    data = random_graph(0)
    with pytest.raises(RuntimeError, match="fit_directly"):
        WL(3, 1, 2)(data.x, data.edge_index)
    fitted = WL(3, 1, 2)
    fitted.fit_directly(make_parts(dataset(2), torch.arange(10), 1), ())
    with pytest.raises(RuntimeError, match="size mismatch"):
        WL(3, 1, 3).load_state_dict(fitted.state_dict())
