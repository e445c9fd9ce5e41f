"""Geom-GCN (Pei et al., 2020)."""

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from gind.baselines.latent import Embedding, closest_pairs, embed
from gind.baselines.propagate import neighbors, square, times
from gind.features import dropout, project
from gind.graph import Graph

__all__ = ["DIVISIONS", "GeomGCN", "divide"]

DIVISIONS = 9
"""neighbors in the graph and in the latent space, each in four quadrants, and the node itself"""
Indices = NDArray[np.int64]


class GeomGCN(nn.Module):
    """H ↦ ReLU([Â₁ H W₁ ‖ ... ‖ Â₉ H W₉]), and in the last layer the mean of the nine; dropout before each layer.

    Nodes have positions in a plane (`embedding`, see `gind.baselines.latent`). The latent neighbors are the closest
    pairs there, as many as the graph has edges. The neighbors of both kinds are divided by the quadrant in which
    they lie, the node itself is the ninth division. A pair of both kinds counts as latent, and all Âᵣ are parts of
    one D^(-1/2) A D^(-1/2), as in the authors' code. Weights of edges are not used.

    The authors' variants with Poincaré and struc2vec embeddings are not available. Positions are computed once for an
    `edge_index`: batches that are put together anew each epoch are embedded anew.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        embedding: Embedding = "isomap",
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        if embedding not in ("isomap", "spectral"):
            raise ValueError(f"`embedding` must be 'isomap' or 'spectral', got {embedding!r}.")
        self.dropout, self.embedding, self.undirected = dropout, embedding, undirected
        widths = [in_channels, *[DIVISIONS * hidden_channels] * (num_layers - 1)]
        outs = [hidden_channels] * (num_layers - 1) + [out_channels]
        # W₁ ... W₉ one below the other
        self.weights = nn.ParameterList(
            torch.cat([nn.init.xavier_uniform_(torch.empty(out, width)) for _ in range(DIVISIONS)])
            for width, out in zip(widths, outs, strict=True)
        )

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        graph = neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected)
        first, *rest = self.weights
        parts = self._aggregate(project(x, first, dropout=self.dropout, training=self.training), graph)
        for weight in rest:
            hidden = dropout(torch.cat(parts, dim=1).relu(), self.dropout, self.training)
            parts = self._aggregate(F.linear(hidden, weight), graph)
        return torch.stack(parts).mean(dim=0)

    def _aggregate(self, z: Tensor, graph: Graph) -> list[Tensor]:
        """Âᵣ Zᵣ for the nine slices of Z."""

        def build() -> tuple[Tensor, ...]:
            position, latent = _latent_space(graph, self.embedding)
            return tuple(matrix.to(z.dtype) for matrix in divide(graph, position, latent))

        matrices = graph.keep(("divisions", self.embedding, z.dtype), build)
        return [times(matrix, part) for matrix, part in zip(matrices, z.chunk(DIVISIONS, dim=1), strict=True)]


def divide(graph: Graph, position: NDArray[np.float64], latent: Indices) -> list[Tensor]:
    """Â₁ ... Â₉ as CSR, of positions (n, 2) and latent pairs (2, k).

    The quadrant of j → i is 2 [x_j ≤ x_i] + [y_j ≤ y_i]: divisions 0 to 3 in the graph, 4 to 7 in the latent space.
    """
    n, node = graph.num_nodes, np.arange(graph.num_nodes)
    edges = np.unique(graph.tail.cpu().numpy() * n + graph.head.cpu().numpy())
    near = np.unique(np.concatenate([latent[0] * n + latent[1], latent[1] * n + latent[0]]))
    edges = np.setdiff1d(edges, near, assume_unique=True)
    source, target = np.divmod(np.concatenate([edges, near, node * n + node]), max(n, 1))
    kind = np.repeat([0, 4, 8], [len(edges), len(near), n])
    below = position[source] <= position[target]
    division = torch.from_numpy(kind + np.where(kind < 8, 2 * below[:, 0] + below[:, 1], 0)).to(graph.device)
    rows, columns = (torch.from_numpy(index).to(graph.device) for index in (target, source))
    scale = torch.bincount(rows, minlength=n).double().rsqrt()
    values = scale[rows] * scale[columns]
    chosen = [division == number for number in range(DIVISIONS)]
    return [square(rows[c], columns[c], values[c], n) for c in chosen]


def _latent_space(graph: Graph, how: Embedding) -> tuple[NDArray[np.float64], Indices]:
    """Positions of all nodes, and as many latent pairs as there are edges; each graph of a batch by itself."""
    n, tail, head = graph.num_nodes, graph.tail.cpu().numpy(), graph.head.cpu().numpy()
    adjacency = scipy.sparse.csr_matrix((np.ones(2 * len(tail)), (np.r_[tail, head], np.r_[head, tail])), (n, n))
    adjacency.data[:] = 1
    batch = np.zeros(n, dtype=np.int64) if graph.batch is None else graph.batch.cpu().numpy()
    position, pairs = np.zeros((n, 2)), [np.empty((2, 0), dtype=np.int64)]
    for nodes in (np.flatnonzero(batch == number) for number in range(graph.num_graphs)):
        if len(nodes):
            own = adjacency[nodes][:, nodes]
            position[nodes] = embed(own, how)
            pairs.append(nodes[closest_pairs(position[nodes], own.nnz // 2)])
    return position, np.concatenate(pairs, axis=1)
