"""The doors to PyTorch Geometric."""

import copy
from typing import Any

import pytest
import torch
from cases import GRAPHS, make_input
from torch.testing import assert_close
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from untyped import untyped

import gind


def conv(**options: Any) -> gind.GINDConv:
    torch.manual_seed(0)
    return gind.GINDConv(3, 4, stop=gind.Stop(1e-10, 2000), **options).double()


def test_every_form_of_a_graph_gives_the_same() -> None:
    case, x, layer = GRAPHS["weighted"], make_input(9), conv()
    expected = layer(x, case.edge_index, case.weight)
    assert case.weight is not None
    matrix = torch.sparse_coo_tensor(case.edge_index, case.weight, (9, 9), check_invariants=True)
    forms: list[Any] = [
        case.graph(),
        matrix,
        matrix.to_sparse_csr(),
        matrix.to_sparse_csc(),
    ]
    for form in forms:
        assert_close(layer(x, form), expected)
    assert_close(layer(x, EdgeIndex(case.edge_index, sparse_size=(9, 9)), case.weight), expected)
    data = Data(x=x, edge_index=case.edge_index, edge_weight=case.weight)
    assert_close(layer(x, gind.Graph.from_data(data)), expected)


def test_batch_of_graphs_equals_one_by_one() -> None:
    layer = conv()
    graphs = [
        Data(x=make_input(GRAPHS[n].num_nodes, seed=k), edge_index=GRAPHS[n].edge_index)
        for k, n in enumerate(["simple", "star", "no edges"])
    ]
    batch = Batch.from_data_list(graphs)
    out, solution = layer(batch.x, batch.edge_index, batch=batch.batch, return_solution=True)
    assert solution.residual.shape == (3,)
    assert_close(out, torch.cat([layer(g.x, g.edge_index) for g in graphs]), atol=1e-7, rtol=0)


def test_lazy_input_width() -> None:
    layer = gind.GINDConv(-1, 4).double()
    out = layer(make_input(9), GRAPHS["star"].edge_index)
    assert out.shape == (9, 4)
    assert layer.lin.weight.shape == (4, 3)
    layer.reset_parameters()
    model = gind.GIND(-1, 4, 2).double()
    model.reset_parameters()
    assert model(make_input(9), GRAPHS["star"].edge_index).shape == (9, 2)


def test_reset_parameters_and_repr() -> None:
    layer = conv(scaling=gind.Row(), edge_norm=gind.FrozenNorm(), injection="separate")
    before = copy.deepcopy(layer.state_dict())
    layer.reset_parameters()
    assert all(not torch.equal(before[key], value) for key, value in layer.state_dict().items() if "gamma" not in key)
    text = repr(layer)
    for word in ("GINDConv(3, 4", "Row", "FrozenNorm", "separate", "HeavyBall", "Stop", "Implicit"):
        assert word in text
    text = repr(gind.GINDConv(3, 4, bias=False, directed=True, throw="raise"))
    for word in ("GINDConv(3, 4, scaling", "bias=False", "directed=True", "throw='raise'"):
        assert word in text


@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_graph_model_pools_each_graph(pooling: Any, head: Any) -> None:
    torch.manual_seed(0)
    model = gind.GIND(3, 4, 2, 2, task="graph", head=head, pooling=pooling, stop=gind.Stop(1e-10, 2000)).double()
    model.eval()
    parts = [(make_input(9, seed=k), GRAPHS[name].edge_index) for k, name in enumerate(["simple", "star"])]
    x = torch.cat([part for part, _ in parts])
    edge_index = torch.cat([parts[0][1], parts[1][1] + 9], dim=1)
    out, solutions = model(x, edge_index, batch=torch.arange(18) // 9, return_solution=True)
    assert out.shape == (2, 2)
    assert len(solutions) == 2
    alone = torch.cat([model(part, edges) for part, edges in parts])
    assert_close(out, alone, atol=1e-7, rtol=0)
    hidden = solutions  # every layer was solved and certified on its own
    assert all(solution.converged and bool(solution.bound.isfinite().all()) for solution in hidden)


def test_model_learns_and_its_state_is_portable() -> None:
    torch.manual_seed(0)
    edge_index = torch.stack([torch.arange(29), torch.arange(1, 30)])
    x, y = torch.randn(30, 5), (torch.arange(30) >= 15).long()
    model = gind.GIND(5, 8, 2, dropout=0.2, diffusion_dropout=0.2, scaling=gind.Row())
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        torch.autograd.backward(torch.nn.functional.cross_entropy(model(x, edge_index), y))
        optimizer.step()
    model.eval()
    scores = model(x, edge_index)
    assert float((scores.argmax(dim=1) == y).float().mean()) > 0.95
    twin = gind.GIND(5, 8, 2, scaling=gind.Row()).eval()
    twin.load_state_dict(model.state_dict())
    assert torch.equal(twin(x, edge_index), scores)


def test_warm_start_of_a_stack() -> None:
    model, x = gind.GIND(3, 4, 2, 2).double().eval(), make_input(9)
    _, cold = model(x, GRAPHS["star"].edge_index, return_solution=True)
    _, warm = model(x, GRAPHS["star"].edge_index, z0=[s.value for s in cold], return_solution=True)
    assert [s.steps for s in warm] == [0, 0]


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "task": (lambda: untyped(gind.GIND)(3, 4, 2, task="edge"), ValueError, "'node', 'graph'"),
    "head": (lambda: untyped(gind.GIND)(3, 4, 2, head="deep"), ValueError, "'linear', 'mlp'"),
    "pooling": (lambda: untyped(gind.GIND)(3, 4, 2, pooling="min"), ValueError, "'sum'"),
    "layers": (lambda: gind.GIND(3, 4, 2, 0), ValueError, "num_layers"),
    "dropout": (lambda: gind.GIND(3, 4, 2, dropout=-0.1), ValueError, "dropout"),
    "unknown": (lambda: gind.GIND(3, 4, 2, solvr=None), TypeError, "solvr"),
    "width": (lambda: conv()(make_input(9, 5), GRAPHS["star"].edge_index), ValueError, r"\(nodes, 3\)"),
    "integers": (lambda: conv()(torch.ones(9, 3).long(), GRAPHS["star"].edge_index), TypeError, "int64"),
    "NaN": (lambda: conv()(make_input(9) * torch.nan, GRAPHS["star"].edge_index), ValueError, "node 0"),
    "edges": (lambda: conv()(make_input(5), GRAPHS["star"].edge_index), ValueError, "node 8"),
    "twice weighted": (lambda: conv()(make_input(9), GRAPHS["star"].graph(), torch.ones(8)), ValueError, "weights"),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals_say_what_to_do(name: str) -> None:
    call, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        call()
