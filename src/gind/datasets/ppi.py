"""GraphSAGE's protein interactions, read from its raw files; PyG's own reader needs networkx, which we do not."""

import json
import pathlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

from gind.datasets.dataset import DataError, Split

__all__ = ["read_ppi"]


def read_ppi(raw: pathlib.Path) -> tuple[tuple[Data, ...], Split]:
    """The graphs in `raw` with `y` (n, labels) of 0 and 1, training ones first, and the split over them."""
    parts = [list(_graphs(raw, part)) for part in ("train", "valid", "test")]
    ends = np.cumsum([len(part) for part in parts]).tolist()
    split = Split(*(torch.arange(end - len(part), end) for part, end in zip(parts, ends, strict=True)))
    return tuple(data for part in parts for data in part), split


def _graphs(raw: pathlib.Path, part: str) -> Iterator[Data]:
    x = torch.from_numpy(np.load(raw / f"{part}_feats.npy", allow_pickle=False)).float()
    y = torch.from_numpy(np.load(raw / f"{part}_labels.npy", allow_pickle=False)).float()
    graph_of = torch.from_numpy(np.load(raw / f"{part}_graph_id.npy", allow_pickle=False)).long()
    if not len(x) == len(y) == len(graph_of):
        raise DataError(
            f"{raw}/{part}_*.npy must have a row per node each, got {len(x)} features, {len(y)} labels and "
            f"{len(graph_of)} graph ids. Download them again."
        )
    edges = _edges(raw / f"{part}_graph.json", len(x))
    # a link between two graphs belongs to neither
    edges = edges[:, graph_of[edges[0]] == graph_of[edges[1]]]
    number = torch.empty(len(x), dtype=torch.long)
    for graph in torch.unique(graph_of):
        members = torch.nonzero(graph_of == graph).flatten()
        number[members] = torch.arange(len(members))
        inside = edges[:, graph_of[edges[0]] == graph]
        yield Data(x=x[members], edge_index=number[inside], y=y[members])


def _edges(path: pathlib.Path, num_nodes: int) -> Tensor:
    """The links of a node-link file, each once and without loops; an undirected file gives both directions."""
    content = json.loads(path.read_text())
    pairs = [(link["source"], link["target"]) for link in content["links"] if link["source"] != link["target"]]
    edges = torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous()
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < num_nodes:
        raise DataError(f"{path} links nodes up to {int(edges.max())}, but there are features of {num_nodes} nodes.")
    once: Tensor = (coalesce if content["directed"] else to_undirected)(edges, num_nodes=num_nodes)
    return once
