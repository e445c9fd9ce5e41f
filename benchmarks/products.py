"""The small matrix product of the compiled solves: GFLOP/s on one thread, beside PyTorch's.

python benchmarks/products.py
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from numba import njit

from gind.kernels.parts import STRIP, multiply
from gind.kernels.tile import PANEL, WIDE

ROWS, ROUNDS = 19_717, 12  # as many as PubMed has nodes


@njit
def product(a, panels, out):  # type: ignore[no-untyped-def]  # compiled for the types it meets
    for first in range(0, len(a), STRIP):
        multiply(a, first, min(first + STRIP, len(a)), panels, out)


def best(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of each in its best round, all in turn."""
    seconds = dict.fromkeys(contenders, np.inf)
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def main() -> None:
    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    for channels in (32, 64, 128, 256):
        a = generator.standard_normal((ROWS, channels)).astype(np.float32)
        K = generator.standard_normal((channels, channels)).astype(np.float32)
        out, torch_a, torch_K = np.empty_like(a), torch.from_numpy(a), torch.from_numpy(K)
        contenders: dict[str, Callable[[], object]] = {"torch": lambda a=torch_a, K=torch_K: a @ K}  # type: ignore[misc]
        for width in {PANEL, WIDE}:
            panels = np.ascontiguousarray(K.reshape(channels, -1, width // 4).transpose(1, 0, 2))
            contenders[f"panels of {width} bytes"] = lambda a=a, p=panels, out=out: product(a, p, out)  # type: ignore[misc]
        for run in contenders.values():
            run()
        rates = {name: 2 * ROWS * channels**2 / s / 1e9 for name, s in best(contenders).items()}
        print(f"{channels:4} channels  " + "  ".join(f"{name} {rate:.0f}" for name, rate in sorted(rates.items())))


if __name__ == "__main__":
    main()
