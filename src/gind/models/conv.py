"""`GINDConv`: the door to PyTorch Geometric."""

from typing import Any, Literal, overload

import torch
from torch import Tensor, nn

from gind.diffusion import Diffusion
from gind.equilibrium import Solution
from gind.features import check, project
from gind.graph import Graph

__all__ = ["GINDConv", "as_graph", "encode", "make_linear"]


def as_graph(
    edge_index: Tensor | Graph,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    directed: bool = False,
) -> Graph:
    """A Graph of whatever PyG passes around: edge_index, EdgeIndex, a torch sparse matrix, or a Graph itself."""
    if isinstance(edge_index, Graph):
        if edge_weight is not None or batch is not None:
            raise ValueError("A Graph already has its weights and its batch. Pass neither `edge_weight` nor `batch`.")
        return edge_index
    if isinstance(edge_index, Tensor) and edge_index.layout != torch.strided:
        if edge_weight is not None:
            raise ValueError("The values of a sparse matrix are its weights. Pass no `edge_weight`.")
        return Graph.from_sparse(edge_index, batch, directed=directed)
    return Graph.from_edge_index(edge_index, num_nodes, edge_weight, batch, directed=directed)


class GINDConv(nn.Module):
    """A linear map to `out_channels`, then the equilibrium of a `Diffusion`: a drop-in for a PyG convolution.

    `in_channels=-1` is filled in by the first call. `directed=True` keeps every given edge as an edge of its own. All
    other options are those of `Diffusion`.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True, directed: bool = False, **options: Any
    ) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.directed = directed
        self.lin = make_linear(in_channels, out_channels, bias)
        self.diffusion = Diffusion(out_channels, **options)

    @property
    def in_channels(self) -> int:
        """Width of the input, -1 as long as it is not known."""
        return -1 if isinstance(self.lin, nn.LazyLinear) else self.lin.in_features

    def reset_parameters(self) -> None:
        """New random parameters."""
        self.lin.reset_parameters()
        self.diffusion.reset_parameters()

    @overload
    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        z0: Tensor | None = None,
        return_solution: Literal[False] = False,
    ) -> Tensor: ...

    @overload
    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        z0: Tensor | None = None,
        return_solution: Literal[True],
    ) -> tuple[Tensor, Solution]: ...

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        z0: Tensor | None = None,
        return_solution: bool = False,
    ) -> Tensor | tuple[Tensor, Solution]:
        """(nodes, in_channels) to (nodes, out_channels). With `batch`, each graph is solved and stopped on its own."""
        b = encode(x, self.lin)
        graph = as_graph(edge_index, len(x), edge_weight, batch, directed=self.directed)
        out: Tensor
        out, solution = self.diffusion(b, graph, z0=z0, return_solution=True)
        return (out, solution) if return_solution else out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, {self.diffusion.extra_repr()})"


def make_linear(in_channels: int, out_channels: int, bias: bool = True) -> nn.Linear:
    """A linear map; `in_channels=-1` takes its width from the first input."""
    for name, value in (("in_channels", in_channels), ("out_channels", out_channels)):
        lazy = name == "in_channels" and value == -1
        if isinstance(value, bool) or not isinstance(value, int) or not (lazy or value >= 1):
            raise ValueError(
                f"`{name}` must be an int >= 1{', or -1' if name == 'in_channels' else ''}, got {value!r}."
            )
    if in_channels == -1:
        return nn.LazyLinear(out_channels, bias)
    return nn.Linear(in_channels, out_channels, bias)


def encode(x: Tensor, linear: nn.Linear, dropout: float = 0.0, training: bool = False) -> Tensor:
    """The linear map of the features, after dropout; sparse CSR features stay sparse.

    Refuses features that are not (nodes, in_channels), finite, and in the precision of the parameters.
    """
    check(x)
    if x.dtype != linear.weight.dtype:
        raise TypeError(f"`x` is {x.dtype} but the parameters are {linear.weight.dtype}. Use `.to({x.dtype})`.")
    if isinstance(linear, nn.LazyLinear):
        linear(torch.zeros(0, x.shape[1], dtype=x.dtype, device=x.device))  # the first input fixes the width
    if x.shape[1] != linear.in_features:
        raise ValueError(f"`x` must have shape (nodes, {linear.in_features}), got {tuple(x.shape)}.")
    return project(x, linear.weight, linear.bias, dropout=dropout, training=training)
