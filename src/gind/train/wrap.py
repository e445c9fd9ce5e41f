"""Whatever a user has, as a `Problem`."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from gind.datasets import DataError, Dataset, Metric, Split, Task
from gind.train.problem import Problem, split_of_masks

__all__ = ["as_dataset", "as_problem"]


def as_problem(data: Problem | Dataset | Data | Sequence[Data], split: Split | int | None, batch_size: int) -> Problem:
    """The problem of a Dataset, a PyG Data or a list of them."""
    if isinstance(data, Problem):
        return data
    dataset = as_dataset(data)
    if isinstance(data, Data) and not isinstance(split, Split):
        split = split_of_masks(data, split)
    if split is None or isinstance(split, int):
        if not dataset.splits:
            raise DataError("Pass `split=Split(train, val, test)`: the data brings none.")
        split = dataset.split(split or 0)
    return Problem.of(dataset, split, batch_size)


def as_dataset(data: Dataset | Data | Sequence[Data]) -> Dataset:
    """A Dataset of one graph with labelled nodes, or of many graphs with a label each or a row of them per node."""
    if isinstance(data, Dataset):
        return data
    graphs = (data,) if isinstance(data, Data) else tuple(data)
    if not graphs or not all(isinstance(graph, Data) for graph in graphs):
        raise DataError("Expected a PyG Data, or a non-empty list of them.")
    for graph in graphs:
        if not isinstance(graph.y, Tensor) or not isinstance(graph.x, Tensor):
            raise DataError("Every Data needs features `x` and labels `y` (tensors).")
    task = _task(data, graphs[0].y)
    count = int(graphs[0].y.shape[1]) if task == "multilabel" else max(int(graph.y.max()) for graph in graphs) + 1
    metric: Metric = "micro_f1" if task == "multilabel" else "accuracy"
    return Dataset("the data", task, metric, graphs, tuple(map(str, range(count))), ())


def _task(data: object, y: Tensor) -> Task:
    if y.dim() == 2 and y.shape[1] > 1:
        if isinstance(data, Data):
            raise DataError("Several labels per node need a list of graphs and a `split` of them, got one Data.")
        return "multilabel"
    if isinstance(data, Data) and y.dim() != 1:
        raise DataError(f"`y` must have shape (nodes,), got {tuple(y.shape)}. Use `data.y.squeeze(1)`.")
    if y.dtype != torch.long:
        raise DataError(f"Labels `y` must be class numbers (torch.long), got {y.dtype}. Use `data.y.long()`.")
    return "node" if isinstance(data, Data) else "graph"
