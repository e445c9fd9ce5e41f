"""`GINDConv`: the door to PyTorch Geometric."""

from typing import Any, Literal, overload

from torch import Tensor, nn

from gind.diffusion import Diffusion
from gind.equilibrium import Solution
from gind.features import encode, make_linear
from gind.graph import Graph, as_graph

__all__ = ["GINDConv"]


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
        shown = [f"{self.in_channels}", self.diffusion.extra_repr()]  # which begins with the channels
        shown += ["bias=False"] if self.lin.bias is None else []
        shown += ["directed=True"] if self.directed else []
        return f"{type(self).__name__}({', '.join(shown)})"
