"""H2GCN (Zhu et al., 2020)."""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from gind.baselines.propagate import neighbors, times
from gind.features import csr, dropout, encode
from gind.graph import Graph

__all__ = ["H2GCN", "hops"]


class H2GCN(nn.Module):
    """R⁰ = σ(X W), Rᵏ = [Â₁ Rᵏ⁻¹ ‖ Â₂ Rᵏ⁻¹] for k = 1 ... K, and the scores are [R⁰ ‖ ... ‖ Rᴷ] V.

    Â₁ and Â₂ are D^(-1/2) A D^(-1/2) of the neighbors at distance 1 and at distance exactly 2: a node is not among
    its neighbors. K is `num_layers`, σ is ReLU or, with `relu=False`, the identity; the rounds have no parameters and
    no nonlinearity. Dropout before V only. Weights of edges are not used.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        relu: bool = True,
        undirected: bool = True,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        self.num_layers, self.dropout, self.relu, self.undirected = num_layers, dropout, relu, undirected
        self.encoder = nn.Linear(in_channels, hidden_channels, bias=False)
        self.head = nn.Linear(hidden_channels * (2 ** (num_layers + 1) - 1), out_channels, bias=False)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (nodes, out_channels)."""
        graph = neighbors(x, edge_index, edge_weight, batch, undirected=self.undirected)
        embedded = encode(x, self.encoder)
        rounds = [embedded.relu() if self.relu else embedded]
        one, two = hops(graph, embedded.dtype)
        for _ in range(self.num_layers):
            rounds.append(torch.cat([times(one, rounds[-1]), times(two, rounds[-1])], dim=1))
        scores: Tensor = self.head(dropout(torch.cat(rounds, dim=1), self.dropout, self.training))
        return scores


def hops(graph: Graph, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Â₁ and Â₂ as CSR."""

    def build() -> tuple[Tensor, Tensor]:
        n, head, tail = graph.num_nodes, graph.head.cpu().numpy(), graph.tail.cpu().numpy()
        one = scipy.sparse.csr_matrix((np.ones(len(head), np.int32), (head, tail)), (n, n))
        walks = (one @ one).tocsr()
        two = walks - walks.multiply((one + scipy.sparse.identity(n, np.int32, "csr")).astype(bool))
        two.eliminate_zeros()
        return _scaled(one, dtype, graph.device), _scaled(two, dtype, graph.device)

    return graph.keep(("hops", dtype), build)


def _scaled(pattern: scipy.sparse.csr_matrix, dtype: torch.dtype, device: torch.device) -> Tensor:
    """D^(-1/2) A D^(-1/2) of the 0/1 matrix with these entries; D are its row sums on the left, column sums right."""
    pattern.sort_indices()
    start, column = (torch.from_numpy(index.astype(np.int64)) for index in (pattern.indptr, pattern.indices))
    row = start.diff()
    heard = torch.bincount(column, minlength=len(row))
    values = (row.repeat_interleave(row) * heard[column]).double().rsqrt()
    return csr(start, column, values.to(dtype), pattern.shape).to(device)
