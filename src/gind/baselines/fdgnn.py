"""FDGNN: fast and deep graph neural networks (Gallicchio and Micheli, 2020), a random reservoir and a ridge readout."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import global_add_pool

from gind.equilibrium import Blocks, Contraction, ConvergenceWarning, Stop, Whole, fixed_point

__all__ = ["FDGNN", "Part", "ridge_path"]

_STRENGTHS = tuple(10.0**power for power in range(-6, 5))
_BATCH = 256  # graphs per forward pass when the readout is fit


class Part(Protocol):
    """Graphs (x, edge_index, perhaps edge_weight and batch) and their labels."""

    @property
    def data(self) -> Any:
        """A PyG Data or Batch."""

    @property
    def y(self) -> Tensor:
        """(graphs,) class numbers."""


class FDGNN(nn.Module):
    """x = tanh(W_in u + A x Ŵᵀ) to its fixed point, level on level; scores are linear in the sum over the nodes.

    W_in and Ŵ are random, with `connections` numbers other than 0 in each row, and never trained; u are the features
    and then the states of the level below. ‖W_in‖₂ = `input_scale`. With stability="norm", ‖Ŵ‖₂ = `factor` / `degree`:
    a contraction on every graph whose degrees are at most `degree`, since ‖A‖₂ is at most the largest degree. With
    "radius" the spectral radius takes the place of the norm, as in the paper: livelier, without that guarantee.

    The scores are a ridge regression, fit in closed form by `fit_directly`, on the sums p = Σ_v x_v of the last level;
    with `expansion` on that many random units tanh(W p), ‖W‖₂ = 1, as in the paper.
    Messages go from edge_index[0] to edge_index[1].
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        *,
        task: Literal["node", "graph"] = "graph",
        factor: float = 0.9,
        degree: float = 4.0,
        stability: Literal["norm", "radius"] = "norm",
        input_scale: float = 1.0,
        connections: int = 1,
        expansion: int = 0,
        tol: float = 1e-5,
        max_steps: int = 500,
    ) -> None:
        super().__init__()
        if task != "graph":
            raise ValueError(f"FDGNN classifies graphs, `task` must be 'graph', got {task!r}.")
        if num_layers < 1 or connections < 1:
            raise ValueError(f"`num_layers` and `connections` must be at least 1, got {num_layers} and {connections}.")
        if not 0 <= factor < 1 or not degree > 0:
            raise ValueError(f"`factor` must lie in [0, 1) and `degree` be positive, got {factor} and {degree}.")
        if expansion < 0:
            raise ValueError(f"`expansion` must not be negative, got {expansion}.")
        if stability not in ("norm", "radius"):
            raise ValueError(f"`stability` must be 'norm' or 'radius', got {stability!r}.")
        self.num_layers, self.stop = num_layers, Stop(tol, max_steps)
        for level in range(num_layers):
            w_in = _sparse(hidden_channels, hidden_channels if level else in_channels, connections)
            w = _sparse(hidden_channels, hidden_channels, connections)
            size = torch.linalg.matrix_norm(w, 2) if stability == "norm" else torch.linalg.eigvals(w).abs().max()
            self.register_buffer(f"w_in_{level}", w_in * (input_scale / torch.linalg.matrix_norm(w_in, 2)))
            self.register_buffer(f"w_{level}", w * (factor / degree / size))
        if expansion:
            w = torch.rand(expansion, hidden_channels) * 2 - 1
            self.register_buffer("w_out", w / torch.linalg.matrix_norm(w, 2))
        self.expansion = expansion
        self.readout = nn.Linear(expansion or hidden_channels, out_channels)
        self.register_buffer("strength", torch.tensor(torch.nan))  # of the ridge regression

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (graphs, out_channels)."""
        scores: Tensor = self.readout(self.embed(x, edge_index, edge_weight, batch))
        return scores

    @torch.no_grad()
    def embed(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """What the readout sees: Σ_v x_v of the last level (graphs, hidden_channels), or tanh(W Σ_v x_v)."""
        state = x.to_dense()
        weight = state.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight.to(state.dtype)
        for level in range(self.num_layers):
            state = self._solve(level, state, edge_index, weight, batch)
        pooled: Tensor = global_add_pool(state, batch)
        return torch.tanh(pooled @ self.get_buffer("w_out").T) if self.expansion else pooled

    def _solve(self, level: int, u: Tensor, edge_index: Tensor, weight: Tensor, batch: Tensor | None) -> Tensor:
        """The states (nodes, hidden_channels) of a level."""
        source, target = edge_index
        w = self.get_buffer(f"w_{level}")
        injected = u @ self.get_buffer(f"w_in_{level}").T

        def step(z: Tensor) -> Tensor:
            return torch.tanh(injected.index_add(0, target, weight[:, None] * (z @ w.T)[source]))

        # tanh has slope at most 1, and ‖A‖₂² ≤ ‖A‖₁‖A‖_∞: the largest degrees of out- and ingoing edges
        size = weight.abs().double()
        degrees = [size.new_zeros(len(u)).index_add(0, node, size).max() for node in (source, target)]
        factor = float(torch.linalg.matrix_norm(w.double(), 2) * (degrees[0] * degrees[1]).sqrt())
        inner = Whole() if batch is None else Blocks(batch, int(batch.max()) + 1)
        fn = Contraction(step, factor) if factor < 1 else step
        return fixed_point(fn, torch.zeros_like(injected), stop=self.stop, inner=inner).value

    @torch.no_grad()
    def fit_directly(self, train: Sequence[Part], val: Sequence[Part]) -> None:
        """Fit the readout to `train`; its ridge strength is the most accurate on `val`, among equals the closest."""
        (inputs, y), (val_inputs, val_y) = self._collect(train), self._collect(val)
        classes = self.readout.out_features
        targets, val_targets = (2 * F.one_hot(labels, classes).double() - 1 for labels in (y, val_y))
        best = (-1.0, 0.0)
        for strength, (weight, bias) in zip(_STRENGTHS, ridge_path(inputs, targets, _STRENGTHS), strict=True):
            scores = val_inputs @ weight.T + bias
            accuracy = float((scores.argmax(dim=1) == val_y).double().mean())
            value = (accuracy, -float((scores - val_targets).square().mean()))
            if value > best:
                best = value
                self.readout.weight.copy_(weight)
                self.readout.bias.copy_(bias)
                self.get_buffer("strength").fill_(strength)

    def _collect(self, parts: Sequence[Part]) -> tuple[Tensor, Tensor]:
        """What the readout sees of all parts, in float64, and their labels."""
        graphs: list[Any] = []
        for part in parts:
            graphs += part.data.to_data_list() if isinstance(part.data, Batch) else [part.data]
        pieces = []
        with warnings.catch_warnings():
            # counted where the model is evaluated instead of printed once per batch
            warnings.simplefilter("ignore", ConvergenceWarning)
            for start in range(0, len(graphs), _BATCH):
                data = Batch.from_data_list(graphs[start : start + _BATCH])
                pieces.append(self.embed(data.x, data.edge_index, data.get("edge_weight"), data.batch).double())
        return torch.cat(pieces), torch.cat([part.y.reshape(-1) for part in parts])


def ridge_path(x: Tensor, y: Tensor, strengths: Sequence[float]) -> list[tuple[Tensor, Tensor]]:
    """For every λ the (W, c) that minimize ‖XWᵀ + c - Y‖² + λ‖W‖²: one singular value decomposition for all."""
    x_mean, y_mean = x.mean(dim=0), y.mean(dim=0)
    left, values, right = torch.linalg.svd(x - x_mean, full_matrices=False)
    projected = left.T @ (y - y_mean)
    path = []
    for strength in strengths:
        weight = projected.T * (values / (values.square() + strength)) @ right
        path.append((weight, y_mean - weight @ x_mean))
    return path


def _sparse(rows: int, columns: int, connections: int) -> Tensor:
    """A matrix with `connections` uniform numbers at random places of each row, zero elsewhere."""
    matrix = torch.rand(rows, columns) * 2 - 1
    places = torch.rand(rows, columns).argsort(dim=1)
    return torch.where(places < connections, matrix, 0.0)
