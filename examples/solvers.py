"""Compare the solvers and the gradients on the digits graph, from weak to strong K.

Run with `python examples/solvers.py`, or with `--tol 1e-5` and other options. It prints two Markdown tables.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from certificate import digits_graph
from torch import Tensor

import gind
from gind.equilibrium import Adjoint, Solver

SOLVERS: tuple[Solver, ...] = (
    gind.Picard(1.0),
    gind.Picard(),
    gind.Nesterov(),
    gind.Anderson(),
    gind.Broyden(),
    gind.NewtonCG(),
)


class Counted(gind.Energy):
    """An energy that counts: every evaluation of f or E and every Hessian product is one pass over the edges."""

    def __init__(self, energy: gind.Energy) -> None:
        self.energy, self.evaluations, self.products = energy, 0, 0

    def __call__(self, z: Tensor) -> Tensor:
        self.evaluations += 1
        return self.energy(z)

    def value(self, z: Tensor) -> Tensor:
        self.evaluations += 1
        return self.energy.value(z)

    def hessian(self, z: Tensor) -> Callable[[Tensor], Tensor]:
        return self._counted(self.energy.hessian(z))

    def majorizer(self, z: Tensor) -> Callable[[Tensor], Tensor]:
        return self._counted(self.energy.majorizer(z))

    @property
    def smoothness(self) -> Tensor:
        return self.energy.smoothness

    def rounding(self, z: Tensor) -> Tensor:
        return self.energy.rounding(z)

    def _counted(self, product: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def counted(u: Tensor) -> Tensor:
            self.products += 1
            return product(u)

        return counted


def digits_layer(norm: float, channels: int = 64) -> tuple[gind.Diffusion, Tensor, gind.Graph]:
    """A layer in float64 with ‖K‖ = `norm`, and its input: the pixels of the digits."""
    torch.manual_seed(0)
    x, graph = digits_graph()
    layer = gind.Diffusion(channels, throw="ignore").double().eval()
    with torch.no_grad():
        layer.K.mul_(norm / torch.linalg.matrix_norm(layer.K, 2))
    return layer, x.double(), graph


def compare_solvers(norms: list[float], stop: gind.Stop) -> Iterator[str]:
    yield "| ‖K‖ | solver | steps | f and E | Hessian products | CPU seconds | residual |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for norm in norms:
        layer, x, graph = digits_layer(norm)
        for solver in SOLVERS:
            with torch.no_grad():
                energy = layer.bind(x, graph)
                assert isinstance(energy, gind.Energy)
                counted = Counted(energy)
                start = time.process_time()
                solution = gind.fixed_point(counted, torch.zeros_like(x), solver=solver, stop=stop, throw="ignore")
                seconds = time.process_time() - start
            name = f"Picard({solver.alpha or ''})" if isinstance(solver, gind.Picard) else f"{type(solver).__name__}()"
            residual = f"{float(solution.residual):.0e}" + ("" if solution.converged else f" {solution.status.name}")
            counts = f"{solution.steps} | {counted.evaluations} | {counted.products or ''}"
            yield f"| {norm:g} | {name} | {counts} | {seconds:.2f} | {residual} |"


def compare_adjoints(norm: float) -> Iterator[str]:
    adjoints = (gind.Implicit(), gind.Phantom(5), gind.Phantom(20), gind.Unrolled())
    exact, _, _ = gradient_of_K(norm, gind.Implicit(gind.Stop(1e-12, 1000)), gind.Stop(1e-12, 1000))
    yield f"| adjoint, ‖K‖ = {norm:g} | relative error of dL/dK | saved for backward, MB | CPU seconds of backward |"
    yield "| --- | --- | --- | --- |"
    for adjoint in adjoints:
        gradient, saved, seconds = gradient_of_K(norm, adjoint, gind.Stop(1e-6, 1000))
        error = float((gradient - exact).norm() / exact.norm())
        name = f"Phantom({adjoint.steps})" if isinstance(adjoint, gind.Phantom) else f"{type(adjoint).__name__}()"
        yield f"| {name} | {error:.0e} | {saved:.0f} | {seconds:.2f} |"


def gradient_of_K(norm: float, adjoint: Adjoint, stop: gind.Stop) -> tuple[Tensor, float, float]:
    """dL/dK of L = ½‖out‖², what autograd kept for it (MB), and the CPU seconds of `backward`."""
    layer, x, graph = digits_layer(norm)
    layer.adjoint, layer.stop = adjoint, stop
    with saved_bytes() as saved:
        loss = layer(x, graph).square().sum() / 2
    start = time.process_time()
    loss.backward()
    assert layer.K.grad is not None
    return layer.K.grad, sum(saved.values()) / 1e6, time.process_time() - start


@contextmanager
def saved_bytes() -> Iterator[dict[int, int]]:
    """The bytes of each tensor that autograd saves, by address."""
    saved: dict[int, int] = {}
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)  # so that no address is used twice
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--norms", type=float, nargs="+", default=[0.9, 3.0, 6.0, 30.0], help="values of ‖K‖")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-steps", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)  # CPU seconds of one thread mean the same on a busy machine
    for line in compare_solvers(options.norms, gind.Stop(options.tol, options.max_steps)):
        print(line, flush=True)
    print()
    for line in compare_adjoints(3.0):
        print(line, flush=True)


if __name__ == "__main__":
    main()
