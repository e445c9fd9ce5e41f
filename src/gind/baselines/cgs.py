"""CGS (Park et al., 2022): convergent graph solvers, linear equilibria whose matrices are computed from the input."""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gind.baselines.adjacency import open_graph
from gind.diffusion.map import inner_product
from gind.equilibrium import Contraction, Implicit, Stop, fixed_point
from gind.features import Dropout, check, make_linear, project
from gind.graph import Graph, Pooling, pool

__all__ = ["CGS"]

Weights = Literal["degree", "softmax"]


class _Links(NamedTuple):
    """Every edge in both directions."""

    source: Tensor
    target: Tensor
    degree: Tensor
    """(n, 1) links that end at a node, at least 1"""

    @classmethod
    def of(cls, graph: Graph, dtype: torch.dtype) -> "_Links":
        source, target = torch.cat([graph.tail, graph.head]), torch.cat([graph.head, graph.tail])
        degree = torch.bincount(target, minlength=graph.num_nodes)[:, None]
        return cls(source, target, degree.clamp_min(1).to(dtype))

    def gather(self, messages: Tensor, at: Tensor | None = None) -> Tensor:
        """(links, h) to (n, h): sums at the targets, or at other ends."""
        zeros = messages.new_zeros(len(self.degree), messages.shape[1])
        return zeros.index_add(0, self.target if at is None else at, messages)

    def softmax(self, logits: Tensor) -> Tensor:
        """(links, h): positive, with sum 1 over the links that end at a node."""
        index = self.target[:, None].expand_as(logits)
        top = logits.new_zeros(len(self.degree), logits.shape[1])
        top = top.scatter_reduce(0, index, logits.detach(), "amax", include_self=False)
        positive = (logits - top[self.target]).exp()
        return positive / self.gather(positive)[self.target]


class _EdgeMLP(nn.Module):
    """SiLU(V SiLU(U[e, x_source, x_target] + c) + c'), with U split in three: x may be sparse, and is mapped once."""

    def __init__(self, node_in: int, edge_in: int, hidden: int, out: int) -> None:
        super().__init__()
        self.source = make_linear(node_in, hidden, bias=False)
        self.target = make_linear(node_in, hidden, bias=False)
        self.edge = nn.Linear(edge_in, hidden)
        self.out = nn.Linear(hidden, out)

    def forward(self, x: Tensor, e: Tensor, links: _Links) -> Tensor:
        source, target = project(x, self.source.weight), project(x, self.target.weight)
        out: Tensor = self.out(F.silu(self.edge(e) + source[links.source] + target[links.target]))
        return F.silu(out)


class _MessagePassing(nn.Module):
    """e' = edge MLP,  x' = node MLP[mean over links of softmax(attention MLP) e', x]."""

    def __init__(self, node_in: int, edge_in: int, hidden: int, out: int) -> None:
        super().__init__()
        self.edge = _EdgeMLP(node_in, edge_in, hidden, out)
        self.attention = _EdgeMLP(node_in, edge_in, hidden, 1)
        self.node = make_linear(node_in, hidden)
        self.message = nn.Linear(out, hidden, bias=False)
        self.out = nn.Linear(hidden, out)

    def forward(self, x: Tensor, e: Tensor, links: _Links) -> tuple[Tensor, Tensor]:
        new: Tensor = self.edge(x, e, links)
        mean = links.gather(new * links.softmax(self.attention(x, e, links))) / links.degree
        hidden = project(x, self.node.weight, self.node.bias) + self.message(mean)
        return F.silu(self.out(F.silu(hidden))), new


class CGS(nn.Module):
    """z_ik = γ Σ_j A_ij,k z_jk + b_ik for each of `heads` heads k; then, for graphs, pooling; then an MLP.

    A ≥ 0 and b are outputs of `num_layers` rounds of message passing with width `hidden_channels`. The rows of A have
    sums of at most 1, so the map contracts by γ in the maximum norm: there is one equilibrium, whatever the parameters
    are. The distance bound of a solution is in the Euclidean norm, and finite if γ √(‖A‖₁‖A‖∞) < 1 in every head.

    weights   "degree": A = clip(logit, 0, 1)/degree, as published; "softmax": over the neighbors
    dropout   between the linear maps of the MLP
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        *,
        task: Literal["node", "graph"] = "node",
        heads: int = 32,
        gamma: float = 0.5,
        weights: Weights = "degree",
        pooling: Pooling = "sum",
        dropout: float = 0.0,
        stop: Stop | None = None,
    ) -> None:
        super().__init__()
        if num_layers < 1 or heads < 1:
            raise ValueError(f"`num_layers` and `heads` must be at least 1, got {num_layers} and {heads}.")
        if not 0 < gamma < 1:
            raise ValueError(f"`gamma` must lie between 0 and 1, so that there is an equilibrium, got {gamma}.")
        self.task, self.gamma, self.pooling = task, gamma, pooling
        self.weights: Weights = weights
        self.stop = Stop() if stop is None else stop
        widths = [*[hidden_channels] * (num_layers - 1), heads]
        inputs = [(in_channels, 1), *[(hidden_channels, hidden_channels)] * (num_layers - 1)]
        self.layers = nn.ModuleList(
            _MessagePassing(node, edge, 2 * hidden_channels, out)
            for (node, edge), out in zip(inputs, widths, strict=True)
        )
        half = max(hidden_channels // 2, 1)
        self.head = nn.Sequential(
            *(nn.Linear(heads, hidden_channels), nn.SiLU(), Dropout(dropout)),
            *(nn.Linear(hidden_channels, half), nn.SiLU(), Dropout(dropout)),
            nn.Linear(half, out_channels),
        )

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Scores (nodes or graphs, out_channels). An edge's weight is its only feature."""
        check(x)
        graph = open_graph(x, edge_index, edge_weight, batch)
        links = _Links.of(graph, x.dtype)
        A, b = self.transition(x, graph, links)
        z = self._solve(A, b, graph, links)
        scores: Tensor = self.head(pool(z, graph, self.pooling) if self.task == "graph" else z)
        return scores

    def transition(self, x: Tensor, graph: Graph, links: _Links) -> tuple[Tensor, Tensor]:
        """A (links, heads), with row sums of at most 1 at the targets, and b (n, heads)."""
        weight = torch.ones_like(graph.tail) if graph.weight is None else graph.weight
        e = torch.cat([weight, weight])[:, None].to(x.dtype)
        for layer in self.layers:
            x, e = layer(x, e, links)
        if self.weights == "softmax":
            return links.softmax(e), x
        return e.clamp(0, 1) / links.degree[links.target], x

    def _solve(self, A: Tensor, b: Tensor, graph: Graph, links: _Links) -> Tensor:
        def fn(z: Tensor) -> Tensor:
            return b.index_add(0, links.target, self.gamma * A * z[links.source])

        factor = 0.0
        if len(b):
            with torch.no_grad():
                sums = links.gather(A).amax(dim=0) * links.gather(A, links.source).amax(dim=0)
                factor = self.gamma * float(sums.max().sqrt())
        return fixed_point(
            Contraction(fn, factor) if factor < 1 else fn,
            torch.zeros_like(b),
            stop=self.stop,
            adjoint=Implicit(Stop(self.stop.tol, 1000)),
            inner=inner_product(graph),
        ).value
