"""`Dataset`: graphs with features, labels and splits, whatever they came from; `Split`: who trains, who validates."""

import dataclasses
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from gind.errors import UserError

__all__ = ["DataError", "Dataset", "Metric", "Split", "Task"]

Task = Literal["node", "graph", "multilabel"]
Metric = Literal["accuracy", "roc_auc", "micro_f1"]


class DataError(UserError, ValueError):
    """Data that cannot be used as it is; the message says which file or name, what is wrong and what to do."""


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Indices of the nodes (task "node") or of the graphs (other tasks) that train, validate and test; disjoint."""

    train: Tensor
    val: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            index = getattr(self, name)
            if not isinstance(index, Tensor) or index.dtype != torch.long or index.dim() != 1:
                raise TypeError(f"`{name}` must be a vector of indices (torch.long), got {index!r}.")
        whole = torch.cat([self.train, self.val, self.test])
        if len(whole) != len(torch.unique(whole)):
            raise DataError("Train, validation and test overlap, or name an index twice.")

    def without_validation(self) -> "Split":
        """What validates trains."""
        return Split(torch.cat([self.train, self.val]).sort().values, self.val[:0], self.test)

    def __repr__(self) -> str:
        return f"Split({len(self.train)} train, {len(self.val)} val, {len(self.test)} test)"


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """What a run is trained on.

    task "node"        one graph, `y` (n,) long, -1 where unlabelled; splits are of its nodes
    task "graph"       many graphs, `y` (1,) long each; splits are of the graphs
    task "multilabel"  many graphs, `y` (n, classes) float of 0 and 1; splits are of the graphs (inductive)

    Each graph is a PyG `Data` with `x` (float32: dense, or sparse CSR for bags of words), `edge_index` as its source
    gives it (a directed source stays directed), and maybe `edge_weight`.
    """

    name: str
    task: Task
    metric: Metric
    graphs: tuple[Data, ...]
    classes: tuple[str, ...]
    splits: tuple[Split, ...]
    node_ids: tuple[str, ...] | None = None
    """the names of the nodes of task "node", where their source names them"""
    feature_names: tuple[str, ...] = ()
    """the names of the columns of `x`, where their source names them"""

    @property
    def num_features(self) -> int:
        """Width of `x`."""
        return int(self.graphs[0].x.shape[1])

    @property
    def num_classes(self) -> int:
        """Number of scores per node or graph."""
        return len(self.classes)

    def split(self, number: int) -> Split:
        """Split `number`; refused with the numbers there are."""
        if not 0 <= number < len(self.splits):
            raise DataError(f"{self.name} has splits 0 to {len(self.splits) - 1}, there is no split {number}.")
        return self.splits[number]
