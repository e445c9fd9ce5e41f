"""Data that comes with the packages we need anyway: three tables as graphs of nearest neighbors, and a karate club."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub
from torch_geometric.utils import to_undirected

from gind.datasets.dataset import DataError

__all__ = ["embedded"]


def embedded(name: str, neighbors: int = 10) -> tuple[Data, tuple[str, ...]]:
    """The graph of `name` (digits, wine, breast-cancer, karate) and the names of its classes."""
    if name == "karate":
        return _karate()
    # scikit-learn takes a second to import: only who asks for it waits
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")()
    x = np.asarray(bunch.data, dtype=np.float64)
    # pixels are 0 to 16 and share a scale; the columns of the other two are in units of their own
    x = x / 16 if name == "digits" else (x - x.mean(axis=0)) / x.std(axis=0)
    edge_index = _nearest(x, neighbors)
    y = torch.from_numpy(np.asarray(bunch.target, dtype=np.int64))
    data = Data(x=torch.from_numpy(x.astype(np.float32)), edge_index=edge_index, y=y)
    return data, tuple(str(label) for label in bunch.target_names)


def _nearest(x: NDArray[np.float64], neighbors: int) -> Tensor:
    """Edges (both ways) between each row and its nearest others; equal distances go to the lower index."""
    if isinstance(neighbors, bool) or not isinstance(neighbors, int) or not 1 <= neighbors < len(x):
        raise DataError(f"`neighbors` must be a whole number from 1 to {len(x) - 1}, got {neighbors!r}.")
    distance = cdist(x, x, "sqeuclidean")
    np.fill_diagonal(distance, np.inf)
    # a stable sort, because pixels tie: the same graph on every machine
    order = np.argsort(distance, axis=1, kind="stable")[:, :neighbors]
    source = torch.arange(len(x)).repeat_interleave(neighbors)
    directed = torch.stack([source, torch.from_numpy(order.flatten())])
    edge_index: Tensor = to_undirected(directed, num_nodes=len(x))
    return edge_index


def _karate() -> tuple[Data, tuple[str, ...]]:
    """Zachary's club: 34 members, one-hot features, four communities found by modularity."""
    data = KarateClub()[0]
    return Data(x=data.x, edge_index=data.edge_index, y=data.y), ("0", "1", "2", "3")
