"""DGCNN against dense equations, layer by layer."""

import numpy as np
import pytest
import torch
from cases import GRAPHS, Case, make_input
from real_data import real
from torch.testing import assert_close

from gind.baselines.dgcnn import DGCNN
from gind.experiments.models import defaults


def array(tensor: torch.Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.detach().numpy()


def embed(model: DGCNN, x: torch.Tensor, case: Case) -> np.ndarray:
    A = np.eye(case.num_nodes)
    weight = np.ones(case.edge_index.shape[1]) if case.weight is None else case.weight.numpy()
    np.add.at(A, (case.edge_index[1].numpy(), case.edge_index[0].numpy()), weight)
    z, outputs = x.numpy(), []
    for conv in model.convs:
        z = np.tanh(A @ z @ array(conv.get_parameter("weight")).T / A.sum(axis=1, keepdims=True))
        outputs.append(z)
    return np.concatenate(outputs, axis=1)


def head(model: DGCNN, z: np.ndarray, k: int) -> np.ndarray:
    """SortPooling and the CNN, with loops."""
    order = np.argsort(-z[:, -1], kind="stable")[:k]
    rows = np.zeros((k, z.shape[1]))
    rows[: len(order)] = z[order]
    first = np.maximum(rows @ array(model.rows.weight)[:, 0].T + array(model.rows.bias), 0)
    pooled = first[: k // 2 * 2].reshape(k // 2, 2, 16).max(axis=1)
    kernel = array(model.sequence.weight)
    windows = [np.einsum("oct,tc->o", kernel, pooled[t : t + 5]) for t in range(k // 2 - 4)]
    second = np.maximum(np.stack(windows, axis=1) + array(model.sequence.bias)[:, None], 0)
    dense = np.maximum(array(model.dense.weight) @ second.reshape(-1) + array(model.dense.bias), 0)
    scores: np.ndarray = array(model.out.weight) @ dense + array(model.out.bias)
    return scores


@pytest.mark.parametrize("name", GRAPHS)
def test_convolutions_are_those_of_the_paper(name: str) -> None:
    case, model = GRAPHS[name], DGCNN(3, 4, 2).double()
    x = make_input(case.num_nodes)
    expected = torch.from_numpy(embed(model, x, case))
    assert_close(model.embed(x, case.edge_index, case.weight).detach(), expected)


@pytest.mark.parametrize("nodes", [4, 9, 11, 15, 30])
@pytest.mark.parametrize("k", [10, 11, 14])
def test_sort_pooling_and_the_cnn(nodes: int, k: int) -> None:
    """Graphs with fewer nodes than k are filled with zeros, larger ones cut."""
    torch.manual_seed(nodes)
    case = Case(torch.randint(nodes, (2, 3 * nodes)), nodes)
    model, x = DGCNN(3, 4, 2, k=k).double().eval(), make_input(nodes)
    expected = head(model, embed(model, x, case), k)
    assert_close(model(x, case.edge_index).detach()[0], torch.from_numpy(expected))


def test_widths() -> None:
    model = DGCNN(7, 32, 2, k=19)
    shapes = [tuple(conv.get_parameter("weight").shape) for conv in model.convs]
    assert shapes == [(32, 7), (32, 32), (32, 32), (1, 32)]
    assert model.rows.kernel_size == model.rows.stride == (97,)
    assert model.dense.weight.shape == (128, 32 * 5)


@pytest.mark.parametrize("name", ["mutag", "ptc_mr", "ptc"])
def test_default_k_is_the_quantile_of_the_authors(name: str) -> None:
    counts = np.sort([graph.num_nodes for graph in real(name).graphs])
    expected = max(10, counts[int(np.ceil(0.6 * len(counts))) - 1])
    assert defaults("dgcnn", name)["k"] == expected


def test_refusals() -> None:
    for arguments, words in (
        ({"k": 9}, "at least 10"),
        ({"num_layers": 0}, "num_layers"),
        ({"task": "node"}, "graphs"),
    ):
        with pytest.raises(ValueError, match=words):
            DGCNN(3, 4, 2, **arguments)
