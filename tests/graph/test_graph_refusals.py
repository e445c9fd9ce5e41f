"""Bad input is refused at the door, with a sentence that names what was wrong."""

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from gind.graph import Graph

INDEX = torch.tensor([[0, 1, 2], [1, 2, 3]])
ONE_GRAPH = torch.zeros(4, dtype=torch.long)
NAN, INF = float("nan"), float("inf")


def weights(*w: float) -> torch.Tensor:
    return torch.tensor(w)


# what is wrong, the arguments, the error, and what its message must say
CASES: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("out of range", {"num_nodes": 3}, ValueError, r"`edge_index` holds node 3 .*3 nodes.*`num_nodes`"),
    ("negative", {"edge_index": INDEX - 1}, ValueError, "`edge_index` holds node -1"),
    ("float", {"edge_index": INDEX.float()}, TypeError, r"`edge_index`.*float32.*long"),
    ("bool", {"edge_index": INDEX > 1}, TypeError, "`edge_index`.*bool"),
    ("transposed", {"edge_index": INDEX.t()}, ValueError, r"`edge_index`.*\(3, 2\).*transposed.*t\(\)"),
    ("vector", {"edge_index": INDEX[0]}, ValueError, r"`edge_index`.*\(2, edges\).*\(3,\)"),
    ("three rows", {"edge_index": torch.zeros(3, 4, dtype=torch.long)}, ValueError, r"`edge_index`.*\(3, 4\)"),
    ("list", {"edge_index": [[0, 1], [1, 2]]}, TypeError, "`edge_index`.*tensor.*list"),
    ("None", {"edge_index": None}, TypeError, "`edge_index`.*NoneType"),
    ("array", {"edge_index": INDEX.numpy()}, TypeError, "`edge_index`.*ndarray.*as_tensor"),
    ("sparse", {"edge_index": torch.eye(3).to_sparse()}, TypeError, "`edge_index`.*from_sparse"),
    ("NaN weight", {"edge_weight": weights(1, NAN, 1)}, ValueError, "`edge_weight` is nan at edge 1"),
    ("inf weight", {"edge_weight": weights(1, 1, INF)}, ValueError, "`edge_weight` is inf at edge 2"),
    ("negative weight", {"edge_weight": weights(-0.5, 1, 1)}, ValueError, "`edge_weight` is -0.5 at edge 0"),
    ("weights: length", {"edge_weight": weights(1, 1)}, ValueError, r"`edge_weight`.*3 edges.*\(2,\)"),
    ("weights: no length", {"edge_weight": torch.tensor(1.0)}, ValueError, "`edge_weight`.*3 edges"),
    ("weights: matrix", {"edge_weight": torch.ones(3, 2)}, ValueError, r"`edge_weight`.*\(3, 2\)"),
    ("weights: list", {"edge_weight": [1.0, 1.0, 1.0]}, TypeError, "`edge_weight`.*tensor.*list"),
    ("weights: bool", {"edge_weight": INDEX[0] > 0}, TypeError, "`edge_weight`.*bool"),
    ("weights: complex", {"edge_weight": weights(1, 1, 1) * 1j}, TypeError, "`edge_weight`.*complex"),
    ("weights: grad", {"edge_weight": torch.ones(3, requires_grad=True)}, ValueError, "`edge_weight`.*detach"),
    ("batch: short", {"num_nodes": 4, "batch": ONE_GRAPH[:3]}, ValueError, "`batch` has 3 entries.*4 nodes"),
    ("batch: long", {"num_nodes": 4, "batch": ONE_GRAPH.repeat(2)}, ValueError, "`batch` has 8 entries.*4 nodes"),
    ("batch: float", {"batch": ONE_GRAPH.float()}, TypeError, "`batch`.*int64.*float32"),
    ("batch: list", {"batch": [0, 0, 0, 0]}, TypeError, "`batch`.*int64.*list"),
    ("batch: negative", {"batch": ONE_GRAPH - 1}, ValueError, "`batch` holds graph -1"),
    ("batch: matrix", {"batch": ONE_GRAPH[:, None]}, ValueError, r"`batch`.*\(4, 1\)"),
    ("across graphs", {"batch": torch.tensor([0, 0, 1, 1])}, ValueError, "Edge 1 joins nodes 1 and 2 .*`batch`"),
    ("negative number", {"num_nodes": -1}, ValueError, "`num_nodes`.*-1"),
    ("bool number", {"num_nodes": True}, TypeError, "`num_nodes`.*bool"),
    ("float number", {"num_nodes": 4.0}, TypeError, "`num_nodes`.*float"),
    ("text number", {"num_nodes": "4"}, TypeError, "`num_nodes`.*str"),
]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("arguments", "error", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_bad_input_is_refused(arguments: dict[str, Any], error: type[Exception], message: str, directed: bool) -> None:
    with pytest.raises(error, match=message):
        Graph.from_edge_index(**{"edge_index": INDEX.clone(), **arguments}, directed=directed)


SPARSE = torch.eye(3).roll(1, 0).to_sparse()
MATRICES: list[tuple[str, Any, type[Exception], str]] = [
    ("dense", torch.eye(3), TypeError, r"sparse.*strided.*to_sparse"),
    ("list", [[0, 1]], TypeError, "sparse.*list"),
    ("rectangle", torch.ones(2, 3).to_sparse(), ValueError, r"square.*\(2, 3\)"),
    ("vector", torch.ones(3).to_sparse(), ValueError, r"square.*\(3,\)"),
    ("negative", -SPARSE, ValueError, "`edge_weight` is -1"),
    ("NaN", SPARSE * NAN, ValueError, "`edge_weight` is nan"),
    ("grad", SPARSE.clone().requires_grad_(), ValueError, "gradient.*detach"),
]


@pytest.mark.parametrize(("matrix", "error", "message"), [m[1:] for m in MATRICES], ids=[m[0] for m in MATRICES])
def test_bad_matrix_is_refused(matrix: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Graph.from_sparse(matrix)


@pytest.mark.parametrize("data", [Data(num_nodes=3), object(), None, INDEX], ids=["Data", "object", "None", "tensor"])
def test_data_without_edges_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="`edge_index`"):
        Graph.from_data(data)


def test_data_is_checked_like_its_tensors() -> None:
    with pytest.raises(ValueError, match="`edge_index` holds node 3"):
        Graph.from_data(Data(edge_index=INDEX.clone(), num_nodes=2))


def test_a_weight_beyond_the_range_of_single_precision() -> None:
    graph = Graph.from_edge_index(INDEX, 4, torch.tensor([1.0, 1e39, 2.0], dtype=torch.float64))
    assert graph.weight_as(torch.float64).max() == 1e39
    with pytest.raises(ValueError, match=r"edge weight of 1e\+39 .* torch.float32.*Scale the weights, or .*double\(\)"):
        graph.weight_as(torch.float32)
