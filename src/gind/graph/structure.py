"""`Graph`: nodes and edges, each edge stored once, validated and frozen."""

import dataclasses
import functools
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from gind.graph.check import Edges, cast_weights, check_edges, check_num_graphs

__all__ = ["Graph", "lasting"]

_KEEP = 8  # graphs kept per edge_index: one for each set of weights, batch, ... in use
P = ParamSpec("P")
R = TypeVar("R")


def lasting(function: Callable[P, R]) -> Callable[P, R]:
    """Compute tensors that are kept outside of inference mode, so that autograd may use them later."""

    @functools.wraps(function)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        with torch.inference_mode(False), torch.no_grad():
            return function(*args, **kwargs)

    return outside


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """n nodes and m edges, each edge once, sorted by its tail.

    The orientation tail → head of an undirected edge is arbitrary (from the smaller to the larger index); nothing
    computed from the graph depends on it. Self-loops carry no flux: they are no edges, only remembered in `loops`.

    Build one with `from_edge_index`, `from_data` or `from_sparse`.
    """

    num_nodes: int
    tail: Tensor
    """(m,) the node an edge leaves"""
    head: Tensor
    """(m,) the node an edge enters"""
    ptr: Tensor
    """(n + 1,) the edges of tail i are ptr[i] ... ptr[i + 1] - 1"""
    weight: Tensor | None
    """(m,) float64, or None if all are 1"""
    batch: Tensor | None
    """(n,) the graph of each node, or None if there is one graph"""
    num_graphs: int
    directed: bool
    """whether every given edge was kept as an edge of its own"""
    loops: Tensor
    """(n,) float64: weight of the self-loops that were left out at each node"""

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        directed: bool = False,
        num_graphs: int | None = None,
    ) -> "Graph":
        """The graph of a PyG `edge_index` (2 x E, also an `EdgeIndex`); the same tensors give the same object.

        A pair given in both directions is one edge with the mean of the two weights, repeats in one direction add
        up. With `directed=True` every given edge stays an edge of its own, and its direction is its orientation.
        `num_graphs` is only needed if the last graphs of a batch have no nodes.
        """

        def build() -> Graph:
            edges = check_edges(edge_index, num_nodes, edge_weight, batch)
            return cls._build(edges, directed, check_num_graphs(num_graphs, edges.batch))

        options = (type(num_nodes), num_nodes, directed, num_graphs)
        return _remember(edge_index, (edge_weight, batch), options, build)

    @classmethod
    def from_data(cls, data: Any, *, directed: bool = False) -> "Graph":
        """The graph of a PyG `Data` or `Batch`: its edge_index, edge_weight, num_nodes and batch."""
        edge_index = getattr(data, "edge_index", None)
        if edge_index is None:
            raise TypeError(
                f"Expected a PyG Data or Batch with an `edge_index`, got {type(data).__name__} without one. "
                "For an adjacency matrix use `Graph.from_sparse`."
            )
        return cls.from_edge_index(
            edge_index,
            data.num_nodes,
            getattr(data, "edge_weight", None),
            batch := getattr(data, "batch", None),
            directed=directed,
            num_graphs=None if batch is None else getattr(data, "num_graphs", None),
        )

    @classmethod
    def from_sparse(cls, adjacency: Tensor, batch: Tensor | None = None, *, directed: bool = False) -> "Graph":
        """The graph of a square torch sparse matrix (any layout): entry (i, j) is an edge i → j of that weight."""
        if not isinstance(adjacency, Tensor) or adjacency.layout == torch.strided:
            raise TypeError(
                f"Expected a torch sparse tensor, got {type(adjacency).__name__}"
                f"{' with strided layout' if isinstance(adjacency, Tensor) else ''}. Call `.to_sparse()` first."
            )
        if adjacency.dim() != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise ValueError(f"An adjacency matrix is square, got shape {tuple(adjacency.shape)}.")
        if adjacency.requires_grad:
            raise ValueError(
                "The adjacency matrix requires a gradient, but the weights of a Graph are constants. Pass it detached."
            )

        def build() -> Graph:
            coo = adjacency.detach().to_sparse()
            # not coalesced: repeats add up here as well
            edges = check_edges(coo._indices(), adjacency.shape[0], coo._values(), batch)
            return cls._build(edges, directed, check_num_graphs(None, edges.batch))

        return _remember(adjacency, (batch,), (directed,), build)

    @classmethod
    @lasting
    def _build(cls, edges: Edges, directed: bool, num_graphs: int) -> "Graph":
        source, target, num_nodes = edges.source, edges.target, edges.num_nodes
        w = torch.ones_like(source, dtype=torch.float64) if edges.weight is None else edges.weight.double()
        loop = source == target
        loops = torch.zeros(num_nodes, dtype=torch.float64, device=source.device)
        loops.index_add_(0, source[loop], w[loop])
        source, target, w = source[~loop], target[~loop], w[~loop]
        if directed:
            order = torch.argsort(source, stable=True)
            tail, head, w = source[order], target[order], w[order]
        else:
            tail, head, w = _merge(source, target, w, num_nodes)
        counts = torch.bincount(tail, minlength=num_nodes)
        return cls(
            num_nodes=num_nodes,
            tail=tail,
            head=head,
            ptr=torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
            weight=None if bool((w == 1).all()) else w,
            batch=None if edges.batch is None else edges.batch.clone(),
            num_graphs=num_graphs,
            directed=directed,
            loops=loops,
        )

    @property
    def num_edges(self) -> int:
        """m."""
        return len(self.tail)

    @property
    def device(self) -> torch.device:
        """Where the graph's tensors are."""
        return self.tail.device

    @functools.cached_property
    @lasting
    def degree(self) -> Tensor:
        """(n,) float64: sum of the weights of the incident edges."""
        return self.out_degree + self._sum_at(self.head)

    @functools.cached_property
    @lasting
    def out_degree(self) -> Tensor:
        """(n,) float64: sum of the weights of the edges that leave; depends on orientation."""
        return self._sum_at(self.tail)

    @functools.cached_property
    @lasting
    def edge_mass(self) -> Tensor:
        """(graphs,) float64: sum of the weights of the edges of each graph."""
        if self.batch is None:
            return self.out_degree.sum().reshape(1)
        return self.out_degree.new_zeros(self.num_graphs).index_add_(0, self.batch, self.out_degree)

    @functools.cached_property
    @lasting
    def node_count(self) -> Tensor:
        """(graphs,) nodes of each graph."""
        if self.batch is None:
            return torch.tensor([self.num_nodes], device=self.device)
        return torch.bincount(self.batch, minlength=self.num_graphs)

    @functools.cached_property
    @lasting
    def cover(self) -> "Graph":
        """The double cover: node i becomes 2i, which edges leave, and 2i + 1, which they enter.

        So the two ends of an edge can be told apart. An undirected edge becomes one in each direction. A self-loop
        stays no edge; it is remembered at both copies, as it leaves and enters.
        """
        tail, head, w = self.tail, self.head, self.weight
        if not self.directed:
            tail, head = torch.cat([tail, head]), torch.cat([head, tail])
            order = torch.argsort(tail, stable=True)
            tail, head, w = tail[order], head[order], None if w is None else torch.cat([w, w])[order]
        counts = torch.zeros(2 * self.num_nodes, dtype=torch.long, device=self.device)
        counts[::2] = torch.bincount(tail, minlength=self.num_nodes)
        return Graph(
            num_nodes=2 * self.num_nodes,
            tail=2 * tail,
            head=2 * head + 1,
            ptr=torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
            weight=w,
            batch=None if self.batch is None else self.batch.repeat_interleave(2),
            num_graphs=self.num_graphs,
            directed=True,
            loops=self.loops.repeat_interleave(2),
        )

    def weight_as(self, dtype: torch.dtype) -> Tensor:
        """(m,) weights in a dtype, empty if all are 1: what the kernels take."""
        cast = self._casts.get(dtype)
        return self._cast(dtype) if cast is None else cast

    def to(self, device: torch.device | str) -> "Graph":
        """The same graph with its tensors on another device."""
        if torch.device(device) == self.device:
            return self
        moved: dict[str, Any] = {
            field.name: value.to(device)
            for field in dataclasses.fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return dataclasses.replace(self, **moved)

    def __repr__(self) -> str:
        extra = ", directed" if self.directed else ""
        extra += ", weighted" if self.weight is not None else ""
        extra += f", {self.num_graphs} graphs" if self.batch is not None else ""
        return f"Graph({self.num_nodes} nodes, {self.num_edges} edges{extra})"

    @functools.cached_property
    def _casts(self) -> dict[torch.dtype, Tensor]:
        return {}

    @functools.cached_property
    def memo(self) -> dict[Any, Any]:
        """What others computed from this graph alone and want to keep with it (scalings, norms)."""
        return {}

    def keep(self, key: Hashable, build: Callable[[], R]) -> R:
        """What `build` makes of this graph, made once and kept with it."""
        if key not in self.memo:
            self.memo[key] = lasting(build)()
        kept: R = self.memo[key]
        return kept

    @lasting
    def _cast(self, dtype: torch.dtype) -> Tensor:
        source = self.degree.new_empty(0) if self.weight is None else self.weight
        self._casts[dtype] = cast_weights(source, dtype)
        return self._casts[dtype]

    def _sum_at(self, node: Tensor) -> Tensor:
        weight = torch.ones_like(node, dtype=torch.float64) if self.weight is None else self.weight
        return torch.zeros(self.num_nodes, dtype=torch.float64, device=self.device).index_add_(0, node, weight)


def _merge(source: Tensor, target: Tensor, weight: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each unordered pair once: the sum of its weights per direction, and their mean if both are present."""
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    pairs, pair = torch.unique(low * num_nodes + high, return_inverse=True)
    backward = (source > target).long()
    sums = weight.new_zeros(2 * len(pairs)).index_add_(0, 2 * pair + backward, weight).view(-1, 2)
    given = torch.bincount(2 * pair + backward, minlength=2 * len(pairs)).view(-1, 2) > 0
    directions = given.sum(dim=1)
    return pairs // max(num_nodes, 1), pairs % max(num_nodes, 1), sums.sum(dim=1) / directions


def _identity(tensor: Any) -> tuple[int, int] | None:
    """Tells one tensor and its in-place changes from others; None where that cannot be known."""
    if not isinstance(tensor, Tensor) or tensor.is_inference():
        return None
    return id(tensor), tensor._version


# tensor → (its identity, {other arguments → (graph, the tensors among them)})
_Entry = tuple[tuple[int, int], dict[Any, tuple[Graph, tuple[Tensor | None, ...]]]]
_cache: Any = WeakIdKeyDictionary()


def _remember(
    tensor: Any, others: tuple[Tensor | None, ...], options: tuple[Any, ...], build: Callable[[], Graph]
) -> Graph:
    """The graph built from these arguments before, or a new one; `tensor` is held weakly."""
    known = all(other is None or _identity(other) is not None for other in others)
    version = _identity(tensor) if known else None
    if version is None:
        return build()
    key = (*map(_identity, others), *options)
    entry: _Entry | None = _cache.get(tensor)
    if entry is None or entry[0] != version:
        entry = (version, {})
    elif key in entry[1]:
        return entry[1][key][0]
    graph = build()
    _cache[tensor] = entry
    # hold what the key's ids refer to, so that no other tensor can take over an id; and not too many of them
    entry[1][key] = (graph, others)
    while len(entry[1]) > _KEEP:
        del entry[1][next(iter(entry[1]))]
    return graph
