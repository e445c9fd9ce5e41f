"""What may be a graph: every refusal says what was expected, what came and what to do."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Edges", "cast_weights", "check_edges", "check_num_graphs"]

_INTEGERS = (torch.int64, torch.int32)


class Edges(NamedTuple):
    """Checked input of a graph."""

    source: Tensor
    target: Tensor
    num_nodes: int
    weight: Tensor | None
    batch: Tensor | None


def check_edges(edge_index: Any, num_nodes: int | None = None, edge_weight: Any = None, batch: Any = None) -> Edges:
    """Refuse what is not a graph, and return the rest as plain int64 tensors."""
    index = _check_index(edge_index)
    batch = _check_batch(batch)
    num_nodes = _check_num_nodes(num_nodes, edge_index, batch)
    if num_nodes is None:
        num_nodes = int(index.max()) + 1 if index.numel() else 0
    if index.numel():
        low, high = int(index.min()), int(index.max())
        if low < 0:
            raise ValueError(f"`edge_index` holds node {low}. Nodes are numbered from 0.")
        if high >= num_nodes:
            raise ValueError(
                f"`edge_index` holds node {high} but the graph has {num_nodes} nodes (0 ... {num_nodes - 1}). "
                "Pass a larger `num_nodes`, or renumber the nodes."
            )
    if batch is not None and len(batch) != num_nodes:
        raise ValueError(f"`batch` has {len(batch)} entries but the graph has {num_nodes} nodes.")
    if batch is not None and batch.device != index.device:
        raise ValueError(f"`batch` is on {batch.device} but `edge_index` on {index.device}. Move one of them.")
    source, target = index
    if batch is not None and bool((batch[source] != batch[target]).any()):
        bad = int((batch[source] != batch[target]).nonzero()[0])
        raise ValueError(
            f"Edge {bad} joins nodes {int(source[bad])} and {int(target[bad])} of different graphs in `batch`. "
            "Graphs of a batch share no edges."
        )
    return Edges(source, target, num_nodes, _check_weight(edge_weight, index), batch)


def cast_weights(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights in a dtype, refused where one would become infinite."""
    cast = weight.to(dtype)
    if not bool(torch.isfinite(cast).all()):
        raise ValueError(
            f"An edge weight of {float(weight.max()):g} is infinite in {dtype}. Scale the weights, or compute in "
            "float64 (`model.double()`)."
        )
    return cast


def check_num_graphs(num_graphs: Any, batch: Tensor | None) -> int:
    """The number of graphs: as given, or as the batch has it."""
    least = 1 if batch is None else int(batch.max()) + 1 if len(batch) else 0
    if num_graphs is None:
        return least
    if isinstance(num_graphs, bool) or not isinstance(num_graphs, int):
        raise TypeError(f"`num_graphs` must be an int, got {type(num_graphs).__name__}.")
    if num_graphs < least or (batch is None and num_graphs != 1):
        raise ValueError(f"`num_graphs` is {num_graphs}, but `batch` has {least} graphs.")
    return num_graphs


def _check_index(edge_index: Any) -> Tensor:
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"`edge_index` must be a torch tensor of shape (2, edges), got {type(edge_index).__name__}. "
            "Use `torch.as_tensor(...)`."
        )
    index = edge_index.as_tensor() if hasattr(edge_index, "as_tensor") else edge_index
    if index.layout != torch.strided:
        raise TypeError("`edge_index` is a sparse matrix. Use `Graph.from_sparse` for an adjacency matrix.")
    if index.dtype not in _INTEGERS:
        raise TypeError(f"`edge_index` must hold int64 node numbers, got {index.dtype}. Use `.long()`.")
    if index.dim() != 2 or index.shape[0] != 2:
        hint = " It looks transposed: use `edge_index.t()`." if index.dim() == 2 and index.shape[1] == 2 else ""
        raise ValueError(f"`edge_index` must have shape (2, edges), got {tuple(index.shape)}.{hint}")
    return index.long()


def _check_num_nodes(num_nodes: Any, edge_index: Any, batch: Tensor | None) -> int | None:
    if num_nodes is None:
        sparse_size = edge_index.sparse_size() if hasattr(edge_index, "sparse_size") else (None, None)
        known = [size for size in sparse_size if size is not None]
        return len(batch) if batch is not None else max(known) if known else None
    if isinstance(num_nodes, bool) or not isinstance(num_nodes, int):
        raise TypeError(f"`num_nodes` must be an int, got {type(num_nodes).__name__}.")
    if num_nodes < 0:
        raise ValueError(f"`num_nodes` must not be negative, got {num_nodes}.")
    return num_nodes


def _check_batch(batch: Any) -> Tensor | None:
    if batch is None:
        return None
    if not isinstance(batch, Tensor) or batch.dtype not in _INTEGERS:
        kind = batch.dtype if isinstance(batch, Tensor) else type(batch).__name__
        raise TypeError(f"`batch` must be an int64 tensor with the graph of each node, got {kind}.")
    if batch.dim() != 1:
        raise ValueError(f"`batch` must have one entry per node, got shape {tuple(batch.shape)}.")
    if batch.numel() and int(batch.min()) < 0:
        raise ValueError(f"`batch` holds graph {int(batch.min())}. Graphs are numbered from 0.")
    return batch.long()


def _check_weight(weight: Any, index: Tensor) -> Tensor | None:
    if weight is None:
        return None
    if not isinstance(weight, Tensor) or weight.dtype == torch.bool or weight.is_complex():
        kind = weight.dtype if isinstance(weight, Tensor) else type(weight).__name__
        raise TypeError(f"`edge_weight` must be a tensor of real numbers, got {kind}.")
    if weight.dim() == 2 and weight.shape[1] == 1:
        weight = weight[:, 0]
    if weight.dim() != 1 or len(weight) != index.shape[1]:
        raise ValueError(
            f"`edge_weight` must have one entry for each of the {index.shape[1]} edges, got shape "
            f"{tuple(weight.shape)}."
        )
    if weight.requires_grad:
        raise ValueError(
            "`edge_weight` requires a gradient, but the weights of a Graph are constants. Pass `edge_weight.detach()`."
        )
    if weight.device != index.device:
        raise ValueError(f"`edge_weight` is on {weight.device} but `edge_index` on {index.device}. Move one of them.")
    if not bool(torch.isfinite(weight).all()):
        bad = int((~torch.isfinite(weight)).nonzero()[0])
        raise ValueError(f"`edge_weight` is {float(weight[bad])} at edge {bad}. Weights must be finite.")
    if weight.numel() and float(weight.min()) < 0:
        bad = int(weight.argmin())
        raise ValueError(
            f"`edge_weight` is {float(weight[bad])} at edge {bad}. Weights must not be negative: the energy would not "
            "be convex."
        )
    constant: Tensor = weight.detach()
    return constant
