"""Solves with I - cS on graphs without cycles, by elimination from the leaves to the roots.

S ≥ 0, so for c·ρ(S) < 1 this is an M-matrix, and without cycles nothing fills in. What enters at one node is then
carried to every other by products and quotients of positive numbers: each entry of a solution keeps its leading
digits, however small it is beside the others. The residual of a norm, which conjugate gradients see, says nothing of
entries below the precision times the largest.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import csgraph
from torch import Tensor
from torch.autograd.function import once_differentiable

from gind.baselines.adjacency import Adjacency, adjacency
from gind.graph import Graph

__all__ = ["Forest", "forest"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Forest:
    """A symmetric S ≥ 0 without cycles; nodes are numbered level by level, roots first."""

    order: Tensor
    """(n,) the node at each position"""
    levels: tuple[slice, ...]
    parent: Tensor
    """(n,) the position above; 0 at roots"""
    own: Tensor
    """(n,) S_ii"""
    link: Tensor
    """(n,) S_ij to the parent, 0 at roots"""

    def inverse(self, c: Tensor) -> Callable[[Tensor], Tensor]:
        """X ↦ Z, (n, d) to (n, d), with Z_k = (I - c_k S)⁻¹X_k in channel k; 0 ≤ c_k < 1/ρ(S). Differentiable in X."""
        pivot, link = 1 - self.own[:, None] * c, self.link[:, None] * c
        for level in reversed(self.levels[1:]):
            pivot.index_add_(0, self.parent[level], -link[level].square() / pivot[level])
        gain, carry = 1 / pivot, link / pivot

        def solve(X: Tensor) -> Tensor:
            z = X[self.order]
            for level in reversed(self.levels[1:]):
                z.index_add_(0, self.parent[level], carry[level] * z[level])
            z *= gain
            for level in self.levels[1:]:
                z[level] += carry[level] * z[self.parent[level]]
            return torch.empty_like(z).index_copy_(0, self.order, z)

        return lambda X: _solution(X, solve)


def forest(graph: Graph, dtype: torch.dtype) -> Forest | None:
    """D^(-½)(A + I)D^(-½) of a graph as a Forest in a precision, computed once per graph; None if there is a cycle."""
    return graph.keep((forest, dtype), lambda: _build(adjacency(graph, torch.float64), dtype))


def _build(S: Adjacency, dtype: torch.dtype) -> Forest | None:
    n = len(S.crow) - 1
    arrays = tuple(part.cpu().numpy() for part in (S.values, S.col, S.crow))
    matrix = sparse.csr_array(arrays, shape=(n, n))
    matrix.sum_duplicates()
    own = matrix.diagonal()
    links = sparse.csr_array(matrix - sparse.diags_array(own))
    links.eliminate_zeros()
    count, component = csgraph.connected_components(links, directed=False)
    if links.nnz // 2 != n - count:
        return None
    # a node above the first of each component makes one tree of all
    roots = np.unique(component, return_index=True)[1]
    above = sparse.csr_array((np.ones(count), (np.full(count, n), roots)), shape=(n + 1, n + 1))
    links.resize((n + 1, n + 1))
    depth, before = csgraph.dijkstra(links + above, indices=n, unweighted=True, return_predecessors=True)
    order = np.argsort(depth[:n], kind="stable")
    position = np.empty(n + 1, dtype=np.int64)
    position[order], position[n] = np.arange(n), 0
    parents = before[:n][order]
    bounds = np.concatenate([[0], np.bincount(depth[:n].astype(np.int64) - 1).cumsum()]).tolist()
    device = S.values.device
    return Forest(
        torch.from_numpy(order).to(device),
        tuple(slice(first, last) for first, last in itertools.pairwise(bounds)),
        torch.from_numpy(position[parents]).to(device),
        torch.from_numpy(own[order]).to(device, dtype),
        torch.from_numpy(links[order, parents]).to(device, dtype),
    )


class _Solution(torch.autograd.Function):
    """A⁻¹X for a symmetric A: on the way back it is A⁻¹ again."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, solve: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.solve = solve
        return solve(X)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        return ctx.solve(cotangent), None


_solution: Callable[..., Tensor] = _Solution.apply  # torch gives `apply` no types
