"""The input layer on sparse features against its alternatives: forward and backward, best of interleaved rounds.

python benchmarks/features.py             bags of words of the shape of well-known data sets
python benchmarks/features.py crossover   project on CSR against project on dense, over densities

On one thread CPU time is measured, which other processes disturb little; on more, wall-clock time.
"""

import argparse
import itertools
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gind.features import project
from gind.kernels.allocator import keep_memory


class Words(NamedTuple):
    rows: int
    columns: int
    density: float


WORDS = {
    "cornell": Words(183, 1703, 0.054),
    "cora": Words(2708, 1433, 0.0127),
    "chameleon": Words(2277, 2325, 0.0055),
    "squirrel": Words(5201, 2089, 0.0086),
    "citeseer": Words(3327, 3703, 0.0085),
    "pubmed": Words(19717, 500, 0.1),
}
DENSITIES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
Run = Callable[[], Tensor]


def make_features(words: Words, seed: int = 0) -> Tensor:
    """CSR; some words are frequent and most are rare."""
    generator = torch.Generator().manual_seed(seed)
    frequency = torch.empty(words.columns).exponential_(generator=generator).mul_(words.density).clamp_(max=1)
    mask = torch.rand(words.rows, words.columns, generator=generator) < frequency
    return mask.float().to_sparse_csr()


class Transposed(torch.autograd.Function):
    """Torch's own CSR product (MKL), with the transposed pattern at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, x: Tensor, transposed: Tensor, order: Tensor) -> Tensor:
        ctx.kept = values, transposed, order
        return replace(x, values) @ weight.t().contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, transposed, order = ctx.kept
        return None, (replace(transposed, values[order]) @ grad.contiguous()).t(), None, None, None


multiply: Callable[..., Tensor] = Transposed.apply  # torch gives `apply` no types


def replace(x: Tensor, values: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False)


def alternatives(x: Tensor, weight: Tensor, p: float) -> dict[str, Run]:
    dense, values = x.to_dense(), x.values()
    transposed = replace(x, torch.arange(len(values), dtype=torch.float64)).t().to_sparse_csr()
    order = transposed.values().long()
    return {
        "dense": lambda: project(dense, weight, dropout=p, training=True),
        "embedding_bag": lambda: F.embedding_bag(
            x.col_indices(),
            weight.t().contiguous(),
            x.crow_indices(),
            mode="sum",
            per_sample_weights=F.dropout(values, p),
            include_last_offset=True,
        ),
        "MKL": lambda: multiply(F.dropout(values, p), weight, x, transposed, order),
        "project": lambda: project(x, weight, dropout=p, training=True),
    }


def best_times(runs: dict[str, Run], weight: Tensor, rounds: int) -> dict[str, float]:
    """Milliseconds of forward and backward; each round runs all, so that they see the same machine."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    best = dict.fromkeys(runs, math.inf)
    grad = torch.randn_like(next(iter(runs.values()))())
    for number, (name, run) in itertools.product(range(rounds + 1), runs.items()):
        weight.grad = None
        start = clock()
        torch.autograd.backward(run(), grad)
        if number > 0:  # the first round compiles and allocates
            best[name] = min(best[name], 1e3 * (clock() - start))
    return best


def measure(words: Words, names: tuple[str, ...], options: argparse.Namespace, label: str) -> None:
    x = make_features(words)
    for channels, p in itertools.product((16, 64, 128), (0.0, 0.5, 0.8)):
        weight = nn.Parameter(torch.randn(channels, words.columns) / words.columns**0.5)
        every = alternatives(x, weight, p)
        runs = {name: every[name] for name in names}
        for threads in options.threads:
            torch.set_num_threads(threads)
            best = best_times(runs, weight, options.rounds)
            times = " | ".join(f"{value:.2f}" for value in best.values())
            ratio = best["dense"] / best["project"]
            print(f"| {label} | {channels} | {p} | {threads} | {times} | {ratio:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("shapes", "crossover"), default="shapes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "Sparse (CSR|CSC|invariant)")
    keep_memory()
    if options.what == "shapes":
        print("| features | h | p | threads | dense | embedding_bag | MKL | project | dense / project |")
        for label, words in WORDS.items():
            measure(words, ("dense", "embedding_bag", "MKL", "project"), options, label)
    else:
        print("| density | h | p | threads | dense | project | dense / project |")
        for density in DENSITIES:
            measure(Words(4000, 1000, density), ("dense", "project"), options, str(density))


if __name__ == "__main__":
    main()
