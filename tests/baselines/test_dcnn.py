"""DCNN against the equations of the paper, written densely."""

from typing import Literal

import numpy as np
import pytest
import torch
from cases import GRAPHS, Case, make_input
from torch.testing import assert_close
from untyped import untyped

from gind.baselines.dcnn import DCNN


def hops(x: torch.Tensor, case: Case, count: int) -> np.ndarray:
    """(count + 1, nodes, channels): P^j X."""
    A = np.zeros((case.num_nodes, case.num_nodes))
    weight = np.ones(case.edge_index.shape[1]) if case.weight is None else case.weight.numpy()
    np.add.at(A, (case.edge_index[1].numpy(), case.edge_index[0].numpy()), weight)
    degree = A.sum(axis=1)
    P = np.diag(np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)) @ A
    return np.stack([np.linalg.matrix_power(P, j) @ x.numpy() for j in range(count + 1)])


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("task", ["node", "graph"])
def test_equations_of_the_paper(name: str, task: Literal["node", "graph"]) -> None:
    case = GRAPHS[name]
    x = make_input(case.num_nodes)
    torch.manual_seed(0)
    model = DCNN(3, 5, 2, 3, task=task).double().eval()
    torch.nn.init.normal_(model.weight)
    W, W1, W2 = (w.detach().numpy() for w in (model.weight, model.dense.weight, model.out.weight))
    diffused = hops(x, case, 3).transpose(1, 0, 2)
    if task == "graph":
        diffused = diffused.mean(axis=0, keepdims=True)
    z = np.tanh(W * diffused).reshape(len(diffused), -1)
    hidden = np.tanh(z @ W1.T + model.dense.bias.detach().numpy())
    expected = hidden @ W2.T + model.out.bias.detach().numpy()
    assert_close(model(x, case.edge_index, case.weight).detach(), torch.from_numpy(expected))


def test_gradients() -> None:
    case, x = GRAPHS["weighted"], make_input(9)
    model = DCNN(3, 4, 2).double()
    torch.nn.init.normal_(model.weight)
    assert torch.autograd.gradcheck(lambda y: model(y, case.edge_index, case.weight), x.requires_grad_())


def test_no_hops_is_no_graph() -> None:
    x, model = make_input(9), DCNN(3, 4, 2, 0).double().eval()
    assert_close(model(x, GRAPHS["star"].edge_index), model(x, GRAPHS["directed"].edge_index))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="hops"):
        DCNN(3, 4, 2, -1)
    with pytest.raises(ValueError, match="'edge'"):
        untyped(DCNN)(3, 4, 2, task="edge")
