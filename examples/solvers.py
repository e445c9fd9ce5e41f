"""Compare the solvers on the digits graph, from weak to strong K: a Markdown table.

Run with `python examples/solvers.py`, or with `--tol 1e-10` and other options.
"""

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterator

import torch
from certificate import digits_graph
from torch import Tensor

import gind
from gind.equilibrium import Solver

SOLVERS: dict[str, Solver] = {
    "Picard(1.0)": gind.Picard(1.0),
    "Picard()": gind.Picard(),
    "Nesterov()": gind.Nesterov(),
    "HeavyBall()": gind.HeavyBall(),
    "Anderson()": gind.Anderson(),
    "Broyden()": gind.Broyden(),
    "NewtonCG()": gind.NewtonCG(),
}


class Counted(gind.Energy):
    """An energy that counts: each f(z), each E(z) and each Hessian product is one pass over the edges."""

    def __init__(self, energy: gind.Energy) -> None:
        self.energy, self.evaluations, self.products = energy, 0, 0

    def __call__(self, z: Tensor) -> Tensor:
        """f(z)."""
        self.evaluations += 1
        return self.energy(z)

    def value(self, z: Tensor) -> Tensor:
        """E(z)."""
        self.evaluations += 1
        return self.energy.value(z)

    def hessian(self, z: Tensor) -> Callable[[Tensor], Tensor]:
        """The product u ↦ ∇²E(z)u."""
        return self._counted(self.energy.hessian(z))

    def majorizer(self, z: Tensor) -> Callable[[Tensor], Tensor]:
        """The product with a majorizer of E."""
        return self._counted(self.energy.majorizer(z))

    @property
    def smoothness(self) -> Tensor:
        """L."""
        return self.energy.smoothness

    def rounding(self, z: Tensor) -> Tensor:
        """The rounding error of f(z)."""
        return self.energy.rounding(z)

    def _counted(self, product: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def counted(u: Tensor) -> Tensor:
            self.products += 1
            return product(u)

        return counted


def digits_layer(norm: float) -> tuple[gind.Diffusion, Tensor, gind.Graph]:
    """A layer in float64 with ‖K‖ = `norm`, and its input: the 64 pixels of each digit."""
    torch.manual_seed(0)
    x, graph = digits_graph()
    layer = gind.Diffusion(x.shape[1], throw="ignore").double().eval()
    with torch.no_grad():
        layer.K.mul_(norm / torch.linalg.matrix_norm(layer.K, 2))
    return layer, x.double(), graph


def table(norms: list[float], stop: gind.Stop) -> Iterator[str]:
    yield "| ‖K‖ | solver | steps | map evaluations | Hessian products | CPU seconds | residual |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: | --- |"
    for norm in norms:
        layer, x, graph = digits_layer(norm)
        for name, solver in SOLVERS.items():
            with torch.no_grad():
                energy = layer.bind(x, graph)
                assert isinstance(energy, gind.Energy)
                counted = Counted(energy)
                # the undamped iteration cycles where it does not converge at once: no use in watching it for long
                limit = dataclasses.replace(stop, max_steps=min(50, stop.max_steps)) if name == "Picard(1.0)" else stop
                start = time.process_time()
                solution = gind.fixed_point(counted, torch.zeros_like(x), solver=solver, stop=limit, throw="ignore")
                seconds = time.process_time() - start
            note = "" if solution.converged else f" ({solution.status.name})"
            counts = f"{solution.steps} | {counted.evaluations} | {counted.products or ''}"
            yield f"| {norm:g} | `{name}` | {counts} | {seconds:.2f} | {float(solution.residual):.0e}{note} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--norms", type=float, nargs="+", default=[0.9, 3.0, 6.0, 30.0], help="values of ‖K‖")
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--max-steps", type=int, default=350)
    options = parser.parse_args()
    torch.set_num_threads(1)  # CPU seconds of one thread hardly depend on what else the machine does
    list(table([0.9], gind.Stop()))  # the first calls compile the kernels
    for line in table(options.norms, gind.Stop(options.tol, options.max_steps)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
