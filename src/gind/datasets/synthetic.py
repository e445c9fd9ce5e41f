"""Chains: the class is written at the first node only, so a far node must hear of it over the whole chain."""

import torch
from torch_geometric.data import Data

from gind.datasets.dataset import DataError

__all__ = ["chains"]


def chains(length: int = 10, classes: int = 2, chains: int = 20, width: int = 100) -> Data:
    """`chains` undirected chains of `length` nodes per class; features (n, width) are zero but at first nodes.

    The first node of a chain has a one-hot of its class, the label of every node is the class of its chain.
    """
    for name, value, least in (("length", length, 1), ("classes", classes, 2), ("chains", chains, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise DataError(f"`{name}` of chains must be a whole number >= {least}, got {value!r}.")
    if isinstance(width, bool) or not isinstance(width, int) or width < classes:
        raise DataError(f"`width` of chains must be a whole number >= {classes} (the classes), got {width!r}.")
    nodes = torch.arange(classes * chains * length).view(classes * chains, length)
    labels = torch.arange(classes).repeat_interleave(chains)
    x = torch.zeros(nodes.numel(), width)
    x[nodes[:, 0], labels] = 1
    forward = torch.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    edge_index = torch.cat([forward, forward.flip(0)], dim=1)
    return Data(x=x, edge_index=edge_index, y=labels.repeat_interleave(length))
