"""Compare the gradients on the digits graph: error, memory and time. Run with `python examples/adjoints.py`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from solvers import digits_layer
from torch import Tensor

import gind
from gind.equilibrium import Adjoint

ADJOINTS: dict[str, Adjoint] = {
    "Implicit()": gind.Implicit(),
    "Phantom(5)": gind.Phantom(5),
    "Phantom(20)": gind.Phantom(20),
    "Unrolled()": gind.Unrolled(),
}


@contextmanager
def saved_bytes() -> Iterator[dict[int, int]]:
    """The bytes of every tensor that autograd saves for the backward pass, by address."""
    saved: dict[int, int] = {}
    kept: list[Tensor] = []  # so that no address is used twice

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved


def gradient_of_K(norm: float, adjoint: Adjoint, stop: gind.Stop) -> tuple[Tensor, float, float]:
    """dL/dK of L = ½‖out‖², what autograd kept for it (MB), and the CPU seconds of `backward`."""
    layer, x, graph = digits_layer(norm)
    layer.adjoint, layer.stop = adjoint, stop
    with saved_bytes() as saved:
        loss = layer(x, graph).square().sum() / 2
    start = time.process_time()
    loss.backward()
    seconds = time.process_time() - start
    assert layer.K.grad is not None
    return layer.K.grad, sum(saved.values()) / 1e6, seconds


def table(norms: list[float], stop: gind.Stop) -> Iterator[str]:
    yield "| ‖K‖ | adjoint | relative error of dL/dK | saved for backward, MB | CPU seconds of backward |"
    yield "| ---: | --- | ---: | ---: | ---: |"
    for norm in norms:
        exact, _, _ = gradient_of_K(norm, gind.Implicit(gind.Stop(1e-12, 2000)), gind.Stop(1e-12, 2000))
        for name, adjoint in ADJOINTS.items():
            gradient, saved, seconds = gradient_of_K(norm, adjoint, stop)
            error = float((gradient - exact).norm() / exact.norm())
            yield f"| {norm:g} | `{name}` | {error:.0e} | {saved:.0f} | {seconds:.2f} |"


def main() -> None:
    torch.set_num_threads(1)  # CPU seconds of one thread hardly depend on what else the machine does
    for line in table([0.9, 3.0, 6.0], gind.Stop(1e-6, 1000)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
