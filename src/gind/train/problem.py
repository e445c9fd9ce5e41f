"""`Problem`: what training sees. Labels of the test part are not in it, so no loop can look at them.

`Problem.watching_test` is the exception, and says so in `watched`: the protocol of the paper for graph classification.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gind.datasets import DataError, Dataset, Metric, Split, Task

__all__ = ["Part", "Problem", "Watched", "make_parts", "split_of_masks"]

Watched = Literal["val", "test"]

_INPUTS = ("x", "edge_index", "edge_weight")


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One forward pass: a graph or a batch without labels, the rows of the scores that count, and their labels."""

    data: Data
    y: Tensor
    rows: Tensor | None = None
    """None: all rows"""


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Inputs, and the labels of the training and validation part."""

    task: Task
    metric: Metric
    num_features: int
    num_classes: int
    train: tuple[Part, ...]
    """one part for each graph"""
    val: tuple[Part, ...]
    """ready to be evaluated after each epoch, in batches"""
    watched: Watched = "val"
    """the part that `val` is. "val" chooses the weights; "test" chooses nothing: those of the last epoch stay"""

    @classmethod
    def of(cls, dataset: Dataset, split: Split, batch_size: int = 32) -> "Problem":
        """The problem of a dataset, one of its splits apart."""
        for name in ("train", "val"):
            if len(getattr(split, name)) == 0:
                raise DataError(f"The {name} part of this split of {dataset.name} is empty. Take another split.")
        return cls._of(dataset, split.train, split.val, batch_size, "val")

    @classmethod
    def watching_test(cls, dataset: Dataset, split: Split, batch_size: int = 32) -> "Problem":
        """All that is not tested trains, validation part included; the metric on the test part is noted by epoch."""
        if len(split.test) == 0:
            raise DataError(f"The test part of this split of {dataset.name} is empty. Take another split.")
        return cls._of(dataset, split.without_validation().train, split.test, batch_size, "test")

    @classmethod
    def _of(cls, dataset: Dataset, train: Tensor, other: Tensor, batch_size: int, watched: Watched) -> "Problem":
        return cls(
            dataset.task,
            dataset.metric,
            dataset.num_features,
            dataset.num_classes,
            make_parts(dataset, train, 1),
            make_parts(dataset, other, batch_size),
            watched,
        )

    def epoch(self, batch_size: int) -> Iterator[Part]:
        """The parts of one pass; several graphs come in random order, drawn from torch's global generator.

        Less than an eighth of a batch joins the one before (decision 0020).
        """
        if len(self.train) == 1:
            yield self.train[0]
            return
        order = torch.randperm(len(self.train)).tolist()
        batches = max(-(-(len(order) - (batch_size - 1) // 8) // batch_size), 1)
        for number in range(batches):
            last = len(order) if number == batches - 1 else (number + 1) * batch_size
            yield _collate([self.train[i] for i in order[number * batch_size : last]], self.task)


def make_parts(dataset: Dataset, index: Tensor, batch_size: int) -> tuple[Part, ...]:
    """The nodes or graphs of `index` as parts, `batch_size` graphs each."""
    if dataset.task == "node":
        (graph,) = dataset.graphs
        y = graph.y[index]
        if bool((y < 0).any()):
            node = int(index[(y < 0).nonzero()[0]])
            raise DataError(f"Node {node} of {dataset.name} is in a part of the split but has no label.")
        return (Part(_inputs(graph), y, index),)
    singles = [Part(_inputs(dataset.graphs[i]), dataset.graphs[i].y) for i in index.tolist()]
    if batch_size == 1:
        return tuple(singles)
    return tuple(
        _collate(singles[start : start + batch_size], dataset.task) for start in range(0, len(singles), batch_size)
    )


def split_of_masks(data: Data, number: int | None = None) -> Split:
    """The split that a PyG `Data` carries as train_mask, val_mask and test_mask; nodes without label are left out.

    Masks (nodes, splits) have several, of which `number` chooses one.
    """

    def index(name: str) -> Tensor:
        mask = getattr(data, name, None)
        if mask is None:
            if name == "test_mask":
                return torch.empty(0, dtype=torch.long)
            raise DataError(f"The data has no `{name}`. Set it, or pass `split=Split(train, val, test)`.")
        if mask.dim() == 2:
            if number is None:
                raise DataError(f"`{name}` has shape {tuple(mask.shape)}: several splits. Choose one, as `split=0`.")
            if not 0 <= number < mask.shape[1]:
                raise DataError(f"`split` must be 0 to {mask.shape[1] - 1}, as `{name}` has them, got {number}.")
            mask = mask[:, number]
        elif number is not None and name == "train_mask":
            raise DataError("`split` is a number, but `train_mask` has one split only. Leave it out.")
        chosen: Tensor = mask.bool() & (data.y >= 0)
        return chosen.nonzero().flatten()

    return Split(index("train_mask"), index("val_mask"), index("test_mask"))


def _inputs(graph: Data) -> Data:
    """The graph without its labels, or anything else that a model must not see."""
    if graph.num_nodes == 0:
        raise DataError("A graph without nodes cannot be classified. Leave it out.")
    kept = {name: graph[name] for name in _INPUTS if name in graph and graph[name] is not None}
    return Data(num_nodes=graph.num_nodes, **kept)


def _collate(parts: Sequence[Part], task: Task) -> Part:
    data = Batch.from_data_list([part.data for part in parts])
    return Part(data, torch.cat([part.y.reshape(-1) if task == "graph" else part.y for part in parts]))
