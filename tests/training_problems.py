"""Small datasets whose answers are known, and what ends a training, for the tests of training."""

import os
import signal

import torch
from torch import Tensor
from torch_geometric.data import Data

from gind.datasets import Dataset, Split
from gind.train import EpochRecord, Observer


def two_blocks(n: int = 40, noise: float = 0.3, seed: int = 0) -> Data:
    """Two communities with noisy features; masks of train (a quarter), val (a quarter) and test (half)."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    x = torch.randn(n, 4, generator=generator) * noise
    x[:, 0] += 2.0 * y - 1
    pairs = torch.randint(0, n, (2, 6 * n), generator=generator)
    inside = y[pairs[0]] == y[pairs[1]]
    data = Data(x=x, edge_index=pairs[:, inside], y=y)
    order = torch.randperm(n, generator=generator)
    for name, part in zip(("train", "val", "test"), torch.split(order, [n // 4, n // 4, n // 2]), strict=True):
        mask = torch.zeros(n, dtype=torch.bool)
        mask[part] = True
        data[f"{name}_mask"] = mask
    return data


def cycles_and_paths(count: int = 24, seed: int = 0) -> Dataset:
    """Graphs of class 1 are cycles with a marked node, of class 0 paths with none; three splits in one."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        n = int(torch.randint(4, 9, (1,), generator=generator))
        label = number % 2
        ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
        x = torch.ones(n, 2) + 0.1 * torch.randn(n, 2, generator=generator)
        x[0, 1] += 2.0 * label
        graphs.append(Data(x=x, edge_index=ring if label else ring[:, :-1], y=torch.tensor([label])))
    return Dataset("rings", "graph", "accuracy", tuple(graphs), ("path", "cycle"), (_thirds(count),))


def many_labels(count: int = 9, seed: int = 0) -> Dataset:
    """Graphs whose nodes have three labels each: the signs of the features."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        x = torch.randn(12, 3, generator=generator)
        edges = torch.randint(0, 12, (2, 20), generator=generator)
        graphs.append(Data(x=x, edge_index=edges, y=(x > 0).float()))
    return Dataset("signs", "multilabel", "micro_f1", tuple(graphs), ("a", "b", "c"), (_thirds(count),))


def _thirds(count: int) -> Split:
    index: Tensor = torch.arange(count)
    third = count // 3
    return Split(index[third:-third], index[:third], index[-third:])


class Cut(Observer):
    """Ends a training in epoch `at`: by an exception, as a crash would, or by a signal."""

    def __init__(self, at: int, number: signal.Signals | None = None) -> None:
        self.at, self.number = at, number

    def epoch(self, record: EpochRecord) -> None:
        if record.epoch == self.at:
            if self.number is None:
                raise ConnectionAbortedError
            os.kill(os.getpid(), self.number)
