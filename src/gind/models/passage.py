"""What is done with the output of a layer before the next layer, or the head, sees it."""

from typing import Literal, final

from torch import Tensor, nn
from torch_geometric.nn import GraphNorm

from gind.graph import Graph

__all__ = ["Between", "Passage"]

Between = Literal["none", "relu", "norm-relu"]


@final
class Passage(nn.Module):
    """x, or max(0, x), or max(0, N(x)) with N(x) = γ (x - α μ)/√(mean (x - α μ)² + 1e-5) + β in each graph and channel.

    μ is the mean over the nodes of a graph; α, β, γ are learned, one per channel (Cai et al., 2021). It follows a
    solve and is part of none, so every equilibrium keeps its energy and its bound. A graph is normalized by
    itself: its scores are the same in every batch, in training and after it.
    """

    def __init__(self, kind: Between, channels: int) -> None:
        super().__init__()
        self.kind = kind
        self.norm = GraphNorm(channels) if kind == "norm-relu" else None

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """(n, h) to (n, h)."""
        if self.kind == "none":
            return x
        if self.norm is not None:
            x = self.norm(x, graph.batch, batch_size=graph.num_graphs)
        return x.relu()

    def extra_repr(self) -> str:
        """The choice."""
        return repr(self.kind)
