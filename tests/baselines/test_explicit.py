"""GAT, SAGE, SGC, JKNet, APPNP and GCNII against PyG's own models and against NumPy; what all have in common."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected
from training_problems import many_labels, two_blocks
from untyped import untyped

import gind
from gind.baselines.appnp import APPNP
from gind.baselines.gat import GAT
from gind.baselines.gcn import GCN
from gind.baselines.gcnii import GCNII
from gind.baselines.geom_gcn import GeomGCN
from gind.baselines.h2gcn import H2GCN
from gind.baselines.jknet import JKNet
from gind.baselines.propagate import neighbors, propagation
from gind.baselines.sage import SAGE
from gind.baselines.sgc import SGC
from gind.train import FitOptions, make_optimizer
from gind.train.loop import implicit_parameters

N, CHANNELS, HIDDEN, CLASSES = 9, 5, 4, 3
# directed, with a self-loop; 1 and 2 point at each other; node 8 is isolated
EDGES = torch.tensor([[0, 1, 2, 2, 3, 4, 5, 5, 6, 3], [1, 2, 1, 3, 0, 5, 6, 7, 4, 3]])
MODELS: dict[str, Callable[..., nn.Module]] = {
    "gcn": GCN,
    "gat": GAT,
    "sage": SAGE,
    "jknet": JKNet,
    "appnp": APPNP,
    "gcnii": GCNII,
    "geom-gcn": GeomGCN,
    "h2gcn": H2GCN,
    "sgc": SGC,
}
every_model = pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)


def make(build: Callable[..., nn.Module], **options: Any) -> nn.Module:
    torch.manual_seed(0)
    return build(CHANNELS, HIDDEN, CLASSES, **options).double().eval()


def features(n: int = N) -> Tensor:
    x = torch.randn(n, CHANNELS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return x * (x > 0)


def dense_propagation() -> NDArray[np.float64]:
    matrix = np.eye(N)
    for i, j in EDGES.t().tolist():
        matrix[i, j] = matrix[j, i] = 1.0
    degree = matrix.sum(axis=1)
    return np.asarray(matrix / np.sqrt(np.outer(degree, degree)))


def value(parameter: Any) -> NDArray[np.float64]:
    array: NDArray[np.float64] = parameter.detach().numpy()
    return array


def renamed(model: nn.Module, names: dict[str, str]) -> dict[str, Tensor]:
    """The weights by the names that PyG gives them."""
    state: dict[str, Tensor] = model.state_dict()
    for ours, theirs in names.items():
        state = {name.replace(ours, theirs, name.startswith(ours)): tensor for name, tensor in state.items()}
    return state


def test_gat_is_that_of_pyg() -> None:
    model = make(GAT, num_layers=3, heads=2, out_heads=2)
    other = pyg.GAT(CHANNELS, HIDDEN * 2, 3, CLASSES, heads=2, act="elu").double().eval()
    other.load_state_dict(renamed(model, {"first.": "convs.0.lin."}))
    assert_close(model(features(), EDGES), other(features(), to_undirected(EDGES, num_nodes=N)))


def test_sage_is_that_of_pyg() -> None:
    model = make(SAGE, num_layers=3)
    other = pyg.GraphSAGE(CHANNELS, HIDDEN, 3, CLASSES).double().eval()
    other.load_state_dict(renamed(model, {"neighbor.": "convs.0.lin_l.", "ego.": "convs.0.lin_r."}))
    edges = EDGES[:, EDGES[0] != EDGES[1]]
    assert_close(model(features(), EDGES), other(features(), to_undirected(edges, num_nodes=N)))
    directed = make(SAGE, num_layers=3, undirected=False)
    assert_close(directed(features(), EDGES), other(features(), edges))


@pytest.mark.parametrize("steps", [1, 3])
def test_sgc_is_that_of_pyg(steps: int) -> None:
    model: Any = make(SGC, num_layers=steps)
    other = pyg.SGConv(CHANNELS, CLASSES, K=steps).double()
    other.load_state_dict(model.state_dict())
    edges = EDGES[:, EDGES[0] != EDGES[1]]
    assert_close(model(features(), edges), other(features(), to_undirected(edges, num_nodes=N)))
    by_hand = np.linalg.matrix_power(dense_propagation(), steps) @ features().numpy() @ value(model.lin.weight).T
    np.testing.assert_allclose(value(model(features(), EDGES)), by_hand + value(model.lin.bias), atol=1e-12)


@pytest.mark.parametrize("jump", ["cat", "max", "lstm"])
def test_jknet_is_that_of_pyg(jump: str) -> None:
    model = make(JKNet, num_layers=3, jump=jump)
    other = pyg.GCN(CHANNELS, HIDDEN, 3, CLASSES, jk=jump).double().eval()
    other.load_state_dict(renamed(model, {"first.": "convs.0.lin.", "jump.": "jk.", "head.": "lin."}))
    assert_close(model(features(), EDGES), other(features(), to_undirected(EDGES, num_nodes=N)))


def test_jknet_side_by_side_in_numpy() -> None:
    model: Any = make(JKNet, num_layers=2)
    matrix, hidden, layers = dense_propagation(), features().numpy(), []
    for conv, weight in zip(model.convs, (model.first.weight, model.convs[1].lin.weight), strict=True):
        hidden = np.maximum(matrix @ hidden @ value(weight).T + value(conv.bias), 0)
        layers.append(hidden)
    scores = np.concatenate(layers, axis=1) @ value(model.head.weight).T + value(model.head.bias)
    np.testing.assert_allclose(value(model(features(), EDGES)), scores, atol=1e-12)


def test_appnp_is_its_recursion() -> None:
    model: Any = make(APPNP, steps=7, alpha=0.2)
    first, second = model.layers
    hidden = np.maximum(features().numpy() @ value(first.weight).T + value(first.bias), 0)
    start = hidden @ value(second.weight).T + value(second.bias)
    matrix = 0.8 * dense_propagation()
    # the recursion summed up: Z⁷ = M⁷ Z⁰ + 0.2 (M⁶ + ... + I) Z⁰
    powers = [np.linalg.matrix_power(matrix, k) for k in range(8)]
    np.testing.assert_allclose(
        value(model(features(), EDGES)), powers[7] @ start + 0.2 * sum(powers[:7]) @ start, atol=1e-12
    )


@pytest.mark.parametrize(("shared", "residual"), [(True, False), (False, False), (True, True)])
def test_gcnii_is_its_equation(shared: bool, residual: bool) -> None:
    model: Any = make(GCNII, num_layers=3, alpha=0.3, theta=1.5, shared_weights=shared, residual=residual)
    first = np.maximum(features().numpy() @ value(model.encoder.weight).T + value(model.encoder.bias), 0)
    hidden = first
    for number, conv in enumerate(model.convs, start=1):
        beta = math.log(1.5 / number + 1)
        mixed, kept = 0.7 * dense_propagation() @ hidden, 0.3 * first
        own = conv.weight1 if shared else conv.weight2
        after = (1 - beta) * (mixed + kept) + beta * (mixed @ value(conv.weight1) + kept @ value(own))
        hidden = np.maximum(after + hidden * residual, 0)
    scores = hidden @ value(model.head.weight).T + value(model.head.bias)
    np.testing.assert_allclose(value(model(features(), EDGES)), scores, atol=1e-12)


def test_convolutions_of_gcnii_may_have_their_own_group() -> None:
    assert implicit_parameters(make(GCNII, num_layers=2)) == []
    model: Any = make(GCNII, num_layers=2, own_group=True)
    assert len(implicit_parameters(model)) == len(list(model.convs.parameters())) == 2


def test_appnp_decays_the_weights_of_its_first_layer_alone() -> None:
    model: Any = make(APPNP, num_layers=3)
    first, second = make_optimizer(model, FitOptions(lr=0.3, weight_decay=0.1)).param_groups
    assert [id(p) for p in first["params"]] == [id(model.layers[0].weight)]
    assert (first["weight_decay"], second["weight_decay"]) == (0.1, 0.0)
    assert first["lr"] == second["lr"] == 0.3
    assert len(second["params"]) == 5


def test_weights_and_loops_are_those_of_pyg() -> None:
    weight = torch.rand(10, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.5
    graph = neighbors(features(), EDGES, weight, undirected=False)
    index, expected = pyg.conv.gcn_conv.gcn_norm(EDGES, weight, N)
    dense = torch.zeros(N, N, dtype=torch.float64).index_put_((index[1], index[0]), expected)
    assert_close(propagation(graph, torch.float64).to_dense(), dense)
    both = propagation(neighbors(features(), EDGES, weight), torch.float64).to_dense()
    assert_close(both, both.t())
    mean = to_undirected(EDGES, weight, N, reduce="mean")
    assert_close(propagation(neighbors(features(), *mean), torch.float64).to_dense(), both)


@every_model
def test_sparse_features_are_the_same(build: Callable[..., nn.Module]) -> None:
    model = make(build)
    sparse = features().to_sparse_csr()
    assert_close(model(sparse, EDGES), model(features(), EDGES))
    assert_close(make(build, num_layers=1)(sparse, EDGES), make(build, num_layers=1)(features(), EDGES))
    model.train()
    model(sparse, EDGES).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@every_model
def test_directions_do_not_matter_unless_asked(build: Callable[..., nn.Module]) -> None:
    x, both = features(), to_undirected(EDGES, num_nodes=N)
    expected = make(build)(x, both)
    assert_close(make(build)(x, EDGES), expected)
    assert_close(make(build)(x, EDGES.flip(0)), expected)
    assert_close(make(build, undirected=False)(x, both), expected)
    assert not torch.allclose(make(build, undirected=False)(x, EDGES), expected)


@every_model
def test_batch_equals_one_by_one(build: Callable[..., nn.Module]) -> None:
    model = make(build)
    ring = torch.stack([torch.arange(5), (torch.arange(5) + 1) % 5])
    graphs = [
        Data(x=features(), edge_index=EDGES),
        Data(x=features(2), edge_index=torch.empty(2, 0, dtype=torch.long)),
        Data(x=features(1), edge_index=torch.empty(2, 0, dtype=torch.long)),
        Data(x=features(5), edge_index=ring),
    ]
    batch = Batch.from_data_list(graphs)
    expected = torch.cat([model(graph.x, graph.edge_index) for graph in graphs])
    assert bool(expected.isfinite().all())
    assert_close(model(batch.x, batch.edge_index, batch=batch.batch), expected)


# not Geom-GCN: pairs at the same distance are taken by number
@pytest.mark.parametrize("build", [model for model in MODELS.values() if model is not GeomGCN])
def test_numbering_does_not_matter(build: Callable[..., nn.Module]) -> None:
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    place = order.argsort()
    model = make(build)
    assert_close(model(features()[order], place[EDGES]), model(features(), EDGES)[order])


@every_model
def test_changed_edges_are_seen(build: Callable[..., nn.Module]) -> None:
    model, edges = make(build), EDGES.clone()
    with torch.inference_mode():
        before = model(features(), edges)
    model(features(), edges).sum().backward()  # what inference kept serves training
    edges[:, 0] = torch.tensor([0, 7])
    after = model(features(), edges)
    assert not torch.allclose(before, after)
    assert_close(after, model(features(), edges.clone()))


@every_model
def test_training_lowers_the_loss(build: Callable[..., nn.Module]) -> None:
    torch.manual_seed(0)
    layers = {"num_layers": 3} if build is GCNII else {}
    report = gind.fit(build(4, 8, 2, dropout=0.1, **layers), two_blocks(), epochs=15, lr=0.05)
    assert report.history[-1].loss < 0.8 * report.history[0].loss
    report = gind.fit(build(3, 8, 3, dropout=0.1, **layers), many_labels(), 0, epochs=3, batch_size=2, lr=0.05)
    assert report.history[-1].loss < report.history[0].loss


@every_model
def test_refusals(build: Callable[..., nn.Module]) -> None:
    with pytest.raises(ValueError, match="num_layers"):
        build(CHANNELS, HIDDEN, CLASSES, 0)
    with pytest.raises(ValueError, match="node 9"):
        make(build)(features(), torch.tensor([[0], [9]]))
    with pytest.raises(ValueError, match="shape"):
        make(build)(features()[:, :2], EDGES)
    with pytest.raises(ValueError, match="9 rows but the graph has 10 nodes"):
        make(build)(features(), gind.Graph.from_edge_index(EDGES, 10))


@every_model
def test_a_graph_is_as_good_as_its_edges(build: Callable[..., nn.Module]) -> None:
    once = EDGES[:, [0, 1, 3, 4, 5, 6, 7, 8]]
    model = make(build)
    assert_close(model(features(), gind.Graph.from_edge_index(once, N)), model(features(), once))


def test_refusals_of_options() -> None:
    with pytest.raises(ValueError, match="alpha"):
        APPNP(3, 4, 2, alpha=1.5)
    with pytest.raises(ValueError, match="theta"):
        GCNII(3, 4, 2, theta=-1.0)
    with pytest.raises(ValueError, match="heads"):
        GAT(3, 4, 2, heads=0)
    with pytest.raises(ValueError, match="jump"):
        untyped(JKNet)(3, 4, 2, jump="sum")
    with pytest.raises(ValueError, match="embedding"):
        untyped(GeomGCN)(3, 4, 2, embedding="poincare")
