"""`GIND`: encoder, one or more implicit layers, head."""

from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphNorm

from gind.diffusion import Composition, Diffusion, StepRegularizer
from gind.equilibrium import Solution
from gind.features import encode, make_linear
from gind.graph import Graph, Pooling, as_graph, pool
from gind.models.heads import Head, check_choice, make_head
from gind.models.init import Init, start_linear
from gind.models.passage import Between, Passage

__all__ = ["GIND"]

Task = Literal["node", "graph"]
Depth = Literal["stack", "composition"]
Readout = Literal["last", "all"]
_SOLVE = ("alpha", "solver", "stop", "adjoint", "throw")


class GIND(nn.Module):
    """x → encoder → Diffusion (→ Diffusion ...) → head, for nodes or, with pooling, for graphs.

    `num_layers` certified layers are stacked: each is solved on its own and passes its output on to the next, so depth
    keeps every guarantee. `depth="composition"` makes them one `Composition` instead, as in the published code: one
    equilibrium of all updates in a row, without guarantees. `dropout` acts on the input features and before the head.
    `directed=True` keeps every given edge as an edge of its own. `init="normal"` starts all linear maps as the
    published code does. `encoder_bias=False` leaves nodes without features at zero. `between="relu"` puts
    max(0, ·) on what each layer returns, and "norm-relu" normalizes it before, in each graph (see `Passage`).
    `readout="all"` lets the head see what the encoder and every layer returned, side by side, not the last alone. All
    other options are those of `Diffusion`, shared by the layers.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        *,
        task: Task = "node",
        head: Head = "linear",
        pooling: Pooling = "sum",
        dropout: float = 0.0,
        depth: Depth = "stack",
        init: Init = "uniform",
        directed: bool = False,
        encoder_bias: bool = True,
        between: Between = "none",
        readout: Readout = "last",
        diffusion_dropout: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__()
        check_choice("task", task, Task)
        check_choice("head", head, Head)
        check_choice("depth", depth, Depth)
        check_choice("init", init, Init)
        check_choice("pooling", pooling, Pooling)
        check_choice("between", between, Between)
        check_choice("readout", readout, Readout)
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1, got {num_layers}.")
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must lie in [0, 1), got {dropout}.")
        self.out_channels = out_channels
        self.task, self.pooling, self.dropout, self.directed = task, pooling, dropout, directed
        self.between, self.readout = between, readout
        self.init: Init = init
        self.encoder = make_linear(in_channels, hidden_channels, encoder_bias)
        make = _compose if depth == "composition" else _stack
        self.layers = make(num_layers, hidden_channels, {"dropout": diffusion_dropout, **options})
        self.passages = nn.ModuleList(Passage(between, hidden_channels) for _ in self.layers)
        width = hidden_channels * (1 + len(self.layers)) if readout == "all" else hidden_channels
        self.head = make_head(head, hidden_channels, out_channels, dropout, in_channels=width)
        if init == "normal":
            start_linear(self, self.last)

    @property
    def last(self) -> nn.Linear:
        """The map to the scores."""
        last = self.head[-1]
        assert isinstance(last, nn.Linear)
        return last

    def reset_parameters(self) -> None:
        """New random parameters."""
        for module in self.modules():
            if isinstance(module, nn.Linear | Diffusion | GraphNorm):
                module.reset_parameters()
        if self.init == "normal":
            start_linear(self, self.last)

    @overload
    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        z0: list[Tensor] | None = None,
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
        z0: list[Tensor] | None = None,
        return_solution: Literal[True],
    ) -> tuple[Tensor, list[Solution]]: ...

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        z0: list[Tensor] | None = None,
        return_solution: bool = False,
    ) -> Tensor | tuple[Tensor, list[Solution]]:
        """Scores (nodes or graphs, out_channels); with `return_solution`, also the solution of every layer."""
        if z0 is not None and (not isinstance(z0, list) or len(z0) != len(self.layers)):
            raise ValueError(f"`z0` must be a list of {len(self.layers)} tensors, the values of an earlier solution.")
        graph = as_graph(edge_index, len(x), edge_weight, batch, directed=self.directed)
        hidden = encode(x, self.encoder, self.dropout, self.training)
        seen, solutions = [hidden], []
        for number, layer in enumerate(self.layers):
            hidden, solution = layer(hidden, graph, z0=None if z0 is None else z0[number], return_solution=True)
            hidden = self.passages[number](hidden, graph)
            seen.append(hidden)
            solutions.append(solution)
        read = torch.cat(seen, dim=1) if self.readout == "all" else hidden
        out = self.head(pool(read, graph, self.pooling) if self.task == "graph" else read)
        return (out, solutions) if return_solution else out

    def extra_repr(self) -> str:
        """The options that differ from the defaults and that no layer shows."""
        defaults = {
            "task": "node",
            "pooling": "sum",
            "dropout": 0.0,
            "init": "uniform",
            "directed": False,
            "readout": "last",
        }
        return ", ".join(f"{k}={getattr(self, k)!r}" for k, v in defaults.items() if getattr(self, k) != v)


def _stack(count: int, channels: int, options: dict[str, Any]) -> nn.ModuleList:
    """Layers that are solved one after the other."""
    return nn.ModuleList(Diffusion(channels, **options) for _ in range(count))


def _compose(count: int, channels: int, options: dict[str, Any]) -> nn.ModuleList:
    """One equilibrium of all layers in a row; the regularizer's step comes once, before the first."""
    own = {name: value for name, value in options.items() if name not in _SOLVE}
    first = Diffusion(channels, **own)
    if isinstance(first.regularizer, StepRegularizer):
        own.pop("regularizer")
    layers = [first, *(Diffusion(channels, **own) for _ in range(count - 1))]
    solve = {name: value for name, value in options.items() if name in _SOLVE}
    return nn.ModuleList([Composition(layers, **solve)])
