"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011) with a support vector machine."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from gind.baselines.fdgnn import Part

__all__ = ["WL", "initial_colors", "refine"]

_COSTS = tuple(10.0**power for power in range(-3, 4))
Array = NDArray[np.float64]


class WL(nn.Module):
    """Scores Σ_c count_c(G) w_c + b over all colors c of `num_layers` rounds of refinement, w and b of a linear SVM.

    Colors are 64-bit hashes of a node's surroundings, the same for every graph on every machine, so that the colors of
    the training graphs and w are all that is needed elsewhere. With `normalize`, histograms have length 1 (the kernel
    is a cosine). The nodes start with the hash of their row of features, which suits one-hot labels; features that are
    all different make every node unique, and colors="uniform" starts with one color for all.
    C is chosen out of 10⁻³, ..., 10³ by cross-validation (`inner_folds`) in the training part. Several classes are
    learned one against the rest. `in_channels`, `hidden_channels` and the weights of edges are not used.
    Messages go from edge_index[0] to edge_index[1].
    """

    colors: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 4,
        *,
        task: Literal["node", "graph"] = "graph",
        colors: Literal["features", "uniform"] = "features",
        normalize: bool = True,
        inner_folds: int = 5,
    ) -> None:
        super().__init__()
        if task != "graph":
            raise ValueError(f"WL classifies graphs, `task` must be 'graph', got {task!r}.")
        if num_layers < 0:
            raise ValueError(f"`num_layers` must be at least 0, got {num_layers}.")
        if colors not in ("features", "uniform"):
            raise ValueError(f"`colors` must be 'features' or 'uniform', got {colors!r}.")
        if inner_folds < 2:
            raise ValueError(f"`inner_folds` must be at least 2, got {inner_folds}.")
        self.num_layers, self.uniform, self.normalize = num_layers, colors == "uniform", normalize
        self.inner_folds = inner_folds
        self.register_buffer("colors", torch.empty(0, dtype=torch.long))  # of the training graphs, sorted
        self.register_buffer("weight", torch.empty(0, out_channels))
        self.register_buffer("bias", torch.zeros(out_channels))
        self.register_buffer("cost", torch.tensor(torch.nan))  # C

    @torch.no_grad()
    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """Scores (graphs, out_channels). Colors that no training graph has count for the length only."""
        if not len(self.colors):
            raise RuntimeError("This WL has not been fit. Call `fit_directly`, or load a state dict.")
        histogram = self.histogram(x, edge_index, batch)
        place = torch.searchsorted(self.colors, histogram.color).clamp_max(len(self.colors) - 1)
        known = self.colors[place] == histogram.color
        terms = histogram.value[known, None].to(self.weight.dtype) * self.weight[place[known]]
        sums = self.weight.new_zeros(len(histogram.length), self.weight.shape[1])
        return sums.index_add(0, histogram.graph[known], terms) + self.bias

    def histogram(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> "Histogram":
        """How often each color occurs in each graph, over all rounds."""
        graph = torch.zeros(len(x), dtype=torch.long, device=x.device) if batch is None else batch
        rounds = [initial_colors(x.to_dense()[:, :0] if self.uniform else x.to_dense())]
        for _ in range(self.num_layers):
            rounds.append(refine(rounds[-1], edge_index))
        colors, color = torch.unique(torch.cat(rounds), return_inverse=True)
        pairs, count = torch.unique(graph.repeat(len(rounds)) * len(colors) + color, return_counts=True)
        row, value = pairs // len(colors), count.double()
        length = value.new_zeros(int(graph.max()) + 1).index_add(0, row, value.square()).sqrt()
        return Histogram(row, colors[pairs % len(colors)], value / length[row] if self.normalize else value, length)

    @torch.no_grad()
    def fit_directly(self, train: Sequence[Part], val: Sequence[Part]) -> None:
        """Fit the machine to `train`, C by cross-validation in it; `val` is not used."""
        y = torch.cat([part.y.reshape(-1) for part in train]).cpu().numpy()
        parts = [self.histogram(part.data.x, part.data.edge_index, part.data.get("batch")) for part in train]
        starts = np.cumsum([0, *(len(part.length) for part in parts)])
        colors, column = torch.unique(torch.cat([part.color for part in parts]), return_inverse=True)
        row = torch.cat([part.graph + int(start) for part, start in zip(parts, starts[:-1], strict=True)])
        count = torch.cat([part.value for part in parts])
        phi = csr_array((count.cpu().numpy(), (row.cpu().numpy(), column.cpu().numpy())), (starts[-1], len(colors)))
        gram = (phi @ phi.T).toarray()
        cost = self._choose(gram, y)
        dual, bias = _machines(gram, y, len(self.bias), cost)
        self.colors = colors
        self.weight = torch.as_tensor(phi.T @ dual).to(self.weight)
        self.bias = torch.as_tensor(bias).to(self.bias)
        self.get_buffer("cost").fill_(cost)

    def _choose(self, gram: Array, y: NDArray[np.int64]) -> float:
        """The C of the highest accuracy in cross-validation; of several the one in the middle."""
        from sklearn.model_selection import StratifiedKFold

        counts = np.bincount(y)
        inner_folds = min(self.inner_folds, int(counts[counts > 0].min()))
        if inner_folds < 2 or (counts > 0).sum() < 2:
            return 1.0
        seed = int(torch.randint(2**31 - 1, ()))  # from torch's generator, which the training seeds
        splits = list(StratifiedKFold(inner_folds, shuffle=True, random_state=seed).split(gram, y))

        def accuracy(cost: float) -> float:
            right = 0
            for inside, outside in splits:
                dual, bias = _machines(gram[np.ix_(inside, inside)], y[inside], len(self.bias), cost)
                scores = gram[np.ix_(outside, inside)] @ dual + bias
                right += int((scores.argmax(axis=1) == y[outside]).sum())
            return right / len(y)

        accuracies = [accuracy(cost) for cost in _COSTS]
        best = [cost for cost, value in zip(_COSTS, accuracies, strict=True) if value == max(accuracies)]
        return best[len(best) // 2]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        # how many colors there are, the training decides
        for name, own in (("colors", self.colors), ("weight", self.weight)):
            given = state_dict.get(prefix + name)
            if isinstance(given, Tensor) and given.dim() == own.dim():
                setattr(self, name, own.new_empty(len(given), *own.shape[1:]))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class Histogram(NamedTuple):
    """Entries (graph, color, count or its normalized value), and the lengths of all histograms."""

    graph: Tensor
    color: Tensor
    value: Tensor
    length: Tensor
    """(graphs,) before they were normalized"""


def _machines(gram: Array, y: NDArray[np.int64], classes: int, cost: float) -> tuple[Array, Array]:
    """Dual coefficients (graphs, classes) and bias (classes,); two classes need one machine only."""
    if classes == 2:
        dual, bias = _machine(gram, y == 1, cost)
        return np.stack([-dual, dual], axis=1), np.array([-bias, bias])
    machines = [_machine(gram, y == number, cost) for number in range(classes)]
    return np.stack([dual for dual, _ in machines], axis=1), np.array([bias for _, bias in machines])


def _machine(gram: Array, positive: NDArray[np.bool_], cost: float) -> tuple[Array, float]:
    from sklearn.svm import SVC

    dual = np.zeros(len(gram))
    if positive.all() or not positive.any():
        return dual, 1.0 if positive.all() else -1.0
    machine = SVC(C=cost, kernel="precomputed").fit(gram, positive)
    dual[machine.support_] = machine.dual_coef_[0]
    return dual, float(machine.intercept_[0])


def initial_colors(x: Tensor) -> Tensor:
    """(nodes,) int64: s(Σ_j s(bits(x_j) + s(j))) over the features that are not 0, s the mixing of splitmix64."""
    bits = x.double().contiguous().view(torch.int64)
    place = _mix(torch.arange(x.shape[1], device=x.device))
    return _mix(torch.where(x == 0, 0, _mix(bits + place)).sum(dim=1))


def refine(color: Tensor, edge_index: Tensor) -> Tensor:
    """c_v ↦ s(s(c_v) + s(Σ_u s(c_u))) over the neighbors u; sums wrap around at 2⁶⁴ and do not depend on order."""
    source, target = edge_index
    mixed = _mix(color)
    return _mix(mixed + _mix(torch.zeros_like(color).index_add(0, target, mixed[source])))


def _mix(z: Tensor) -> Tensor:
    """Splitmix64 (Steele et al., 2014): a bijection of 64-bit numbers that spreads every bit over all."""
    first = z - 0x61C8864680B583EB  # + 0x9e3779b97f4a7c15 modulo 2⁶⁴
    second = (first ^ _shift(first, 30)) * -0x40A7B892E31B1A47  # 0xbf58476d1ce4e5b9
    third = (second ^ _shift(second, 27)) * -0x6B2FB644ECCEEE15  # 0x94d049bb133111eb
    return third ^ _shift(third, 31)


def _shift(z: Tensor, bits: int) -> Tensor:
    """To the right, filled with zeros: that of int64 fills with the sign."""
    shifted: Tensor = (z >> bits) & (2 ** (64 - bits) - 1)
    return shifted
