"""Generated graphs for the tests, as the kernels take them (`Raw`) and as users give them (`Given`)."""

from typing import Any, NamedTuple

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

MODEST = settings(max_examples=40, deadline=None)
WEIGHTS = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-3, 1e3))


class Raw(NamedTuple):
    """The edge arguments of the kernels."""

    tail: Tensor
    head: Tensor
    ptr: Tensor
    weight: Tensor
    batch: Tensor
    num_graphs: int

    @property
    def num_nodes(self) -> int:
        return len(self.ptr) - 1

    @property
    def edges(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """For the public operators."""
        return self.tail, self.head, self.ptr, self.weight

    @property
    def plain(self) -> tuple[Tensor, Tensor, Tensor]:
        """For `reference`."""
        return self.tail, self.head, self.weight

    @property
    def fused(self) -> tuple[Tensor, Tensor, Tensor]:
        """For `cpu`."""
        return self.ptr, self.head, self.weight


def raw(
    pairs: list[tuple[int, int]],
    num_nodes: int,
    dtype: torch.dtype = torch.float64,
    weight: list[float] | None = None,
    batch: list[int] | None = None,
    num_graphs: int = 1,
) -> Raw:
    """Sort by tail, as the kernels expect."""
    order = sorted(range(len(pairs)), key=lambda e: pairs[e][0])
    tail = torch.tensor([pairs[e][0] for e in order], dtype=torch.long)
    head = torch.tensor([pairs[e][1] for e in order], dtype=torch.long)
    counts = torch.bincount(tail, minlength=num_nodes)
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    w = torch.tensor([weight[e] for e in order] if weight else [], dtype=dtype)
    return Raw(tail, head, ptr, w, torch.tensor(batch or [], dtype=torch.long), num_graphs)


def some_raw(dtype: torch.dtype = torch.float64, *, weighted: bool = True, batched: bool = True) -> Raw:
    """7 nodes in two graphs: parallel edges, opposite edges, a weight 0 and an isolated node (6)."""
    pairs = [(0, 2), (2, 0), (0, 2), (4, 2), (0, 4), (1, 3), (5, 3), (5, 1)]
    weight = [0.5, 2.0, 1.0, 0.0, 3.0, 0.25, 1.0, 1.5] if weighted else None
    return raw(pairs, 7, dtype, weight, [0, 1, 0, 1, 0, 1, 0] if batched else None, 2 if batched else 1)


def large_raw(dtype: torch.dtype = torch.float64) -> Raw:
    """5000 edges: with 17 channels or more, enough work for the kernels to use threads."""
    generator = torch.Generator().manual_seed(0)
    tail = torch.randint(0, 300, (5000,), generator=generator)
    head = (tail + 3 * torch.randint(1, 100, (5000,), generator=generator)) % 300
    weight: list[float] = torch.rand(5000, generator=generator).tolist()
    pairs = list(zip(tail.tolist(), head.tolist(), strict=True))
    return raw(pairs, 300, dtype, weight, [i % 3 for i in range(300)], 3)


@st.composite
def raws(draw: st.DrawFn, dtype: torch.dtype) -> Raw:
    """No loops; parallel and opposite edges, isolated nodes, no edges at all, and graphs without nodes may come."""
    n = draw(st.integers(1, 30))
    graphs = draw(st.integers(1, 4))
    batch = [i % graphs for i in range(n)]
    pairs = []
    for tail, offset in draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(1, 29)), max_size=80)):
        mates = range(tail % graphs, n, graphs)  # the nodes of the same graph
        head = mates[(tail // graphs + offset) % len(mates)]
        if head != tail:
            pairs.append((tail, head))
    m = len(pairs)
    weight = draw(st.none() | st.lists(WEIGHTS, min_size=m, max_size=m))
    one = graphs == 1 and draw(st.booleans())
    return raw(pairs, n, dtype, weight, None if one else batch, graphs)


class Given(NamedTuple):
    """The arguments of `Graph.from_edge_index`."""

    edge_index: Tensor
    num_nodes: int
    edge_weight: Tensor | None
    batch: Tensor | None = None


@st.composite
def givens(draw: st.DrawFn, max_nodes: int = 12, max_edges: int = 40) -> Given:
    """Anything goes: loops, repeats, both directions, isolated nodes, weights 0, no edges."""
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=max_edges))
    m = len(pairs)
    weight = draw(st.none() | st.lists(WEIGHTS, min_size=m, max_size=m))
    index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()
    return Given(index, n, None if weight is None else torch.tensor(weight, dtype=torch.float64))


def values(seed: int, *shape: int, dtype: torch.dtype, exponents: tuple[float, float] = (0.0, 0.0)) -> Tensor:
    """Normal numbers times powers of ten drawn from the range of exponents, one power per entry."""
    generator = torch.Generator().manual_seed(seed)
    low, high = exponents
    power = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * 10**power).to(dtype)


def dense(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The incidence matrix G, written as a loop: -1 at the tail and 1 at the head of each edge."""
    out = torch.zeros(edge_index.shape[1], num_nodes, dtype=torch.float64)
    pairs: Any = edge_index.t().tolist()
    for e, (tail, head) in enumerate(pairs):
        out[e, tail] -= 1
        out[e, head] += 1
    return out


def dense_propagation(edge_index: Tensor, num_nodes: int) -> Tensor:
    """D^(-½)(A + I)D^(-½) of an undirected graph whose edges stand there once, self-loops among them."""
    A = torch.eye(num_nodes, dtype=torch.float64)
    pairs: Any = edge_index.t().tolist()
    for i, j in pairs:
        A[i, j] += 1
        if i != j:
            A[j, i] += 1
    s = A.sum(dim=1).rsqrt()
    return s[:, None] * A * s
