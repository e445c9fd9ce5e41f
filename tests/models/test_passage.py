"""What stands between two equilibria, and what the head reads."""

from typing import Any, get_args

import numpy as np
import pytest
import torch
from cases import GRAPHS, make_input
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GraphNorm
from untyped import untyped

import gind
from gind.models.passage import Between, Passage


def graphs() -> list[Data]:
    """Of different sizes; the last has a single node."""
    several = [
        Data(x=make_input(GRAPHS[name].num_nodes, seed=k), edge_index=GRAPHS[name].edge_index)
        for k, name in enumerate(["simple", "star", "no edges"])
    ]
    return [*several, Data(x=make_input(1, seed=9), edge_index=torch.empty(2, 0, dtype=torch.long))]


def model(**options: Any) -> gind.GIND:
    torch.manual_seed(0)
    made = gind.GIND(3, 4, 2, 3, task="graph", stop=gind.Stop(1e-10, 2000), **options).double()
    for module in made.modules():
        if isinstance(module, GraphNorm):  # not where it starts, so that every parameter counts
            for parameter in module.parameters():
                parameter.data += 0.3 * torch.randn_like(parameter)
    return made.eval()


def written_out(x: np.ndarray, batch: np.ndarray, norm: GraphNorm) -> np.ndarray:
    """max(0, γ (x - α μ)/√(mean (x - α μ)² + 1e-5) + β), graph by graph."""
    alpha, beta, gamma = (p.detach().numpy() for p in (norm.mean_scale, norm.bias, norm.weight))
    out: np.ndarray = np.empty_like(x)
    for graph in np.unique(batch):
        rows = batch == graph
        centered = x[rows] - alpha * x[rows].mean(axis=0)
        out[rows] = gamma * centered / np.sqrt((centered**2).mean(axis=0) + 1e-5) + beta
    rectified: np.ndarray = np.maximum(out, 0)
    return rectified


@pytest.mark.parametrize("kind", get_args(Between))
def test_a_passage_is_its_equation(kind: Any) -> None:
    batch = Batch.from_data_list(graphs())
    graph = gind.Graph.from_data(batch)
    x = torch.randn(graph.num_nodes, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    passage = next(m for m in model(between=kind).modules() if isinstance(m, Passage))
    expected = x.numpy() if kind == "none" else np.maximum(x.numpy(), 0)
    if kind == "norm-relu":
        assert passage.norm is not None
        expected = written_out(x.numpy(), batch.batch.numpy(), passage.norm)
    assert_close(passage(x, graph), torch.as_tensor(expected))


@pytest.mark.parametrize("between", get_args(Between))
@pytest.mark.parametrize("readout", ["last", "all"])
def test_a_graph_has_the_same_scores_alone_and_in_a_batch(between: Any, readout: Any) -> None:
    made, several = model(between=between, readout=readout), graphs()
    batch = Batch.from_data_list(several)
    together = made(batch.x, batch.edge_index, batch=batch.batch)
    assert torch.isfinite(together).all()
    assert_close(together, torch.cat([made(g.x, g.edge_index) for g in several]), atol=1e-7, rtol=0)


@pytest.mark.parametrize("task", ["node", "graph"])
def test_the_head_reads_the_encoder_and_every_layer(task: Any) -> None:
    torch.manual_seed(0)
    made = gind.GIND(3, 4, 2, 2, task=task, between="relu", readout="all", pooling="mean").double().eval()
    case, x = GRAPHS["star"], make_input(9)
    seen: list[Tensor] = [made.encoder(x)]
    for layer in made.layers:
        seen.append(layer(seen[-1], case.graph()).relu())
    read = torch.cat(seen, dim=1)
    assert read.shape == (9, 12)
    expected = made.head(read if task == "node" else read.mean(dim=0, keepdim=True))
    assert_close(made(x, case.edge_index), expected)


def test_every_equilibrium_of_such_a_stack_is_certified() -> None:
    made, several = model(between="norm-relu", readout="all", ends="own", injection="head"), graphs()
    batch = Batch.from_data_list(several)
    certified = gind.certify_model(made, lambda: made(batch.x, batch.edge_index, batch=batch.batch))
    assert certified is not None
    assert len(certified.layers) == 3
    assert certified.reached
    assert certified.proven


def test_a_passage_starts_anew() -> None:
    made = model(between="norm-relu")
    made.reset_parameters()
    for module in made.modules():
        if isinstance(module, GraphNorm):
            assert_close(module.weight.detach(), torch.ones(4, dtype=torch.float64))
            assert_close(module.bias.detach(), torch.zeros(4, dtype=torch.float64))


@pytest.mark.parametrize(("option", "value"), [("between", "batch-norm"), ("readout", "first")])
def test_other_choices_are_refused(option: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"`{option}` must be one of"):
        untyped(gind.GIND)(3, 4, 2, **{option: value})
