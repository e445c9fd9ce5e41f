"""Draw how the residual falls with the work done, solver by solver, on the digits graph with ‖K‖ = 6.

Run with `python examples/convergence.py`; `--out` says where the picture goes.
"""

import argparse
import dataclasses
import pathlib
from typing import Any

import matplotlib

matplotlib.use("Agg")
import torch
from matplotlib import pyplot as plt
from solvers import Counted, digits_layer
from torch import Tensor

import gind
from gind.equilibrium import Solver
from gind.equilibrium.energy import Problem
from gind.equilibrium.solvers.base import Iterate

PICTURE = pathlib.Path(__file__).parents[1] / "docs" / "assets" / "convergence.png"
CURVES: tuple[tuple[Solver, str, str], ...] = (
    (gind.Picard(1.0), "Picard(1.0), undamped: never converges", "#c1272d"),
    (gind.Picard(), "Picard()", "#888888"),
    (gind.Nesterov(), "Nesterov()", "#56b4e9"),
    (gind.HeavyBall(), "HeavyBall()", "#0072b2"),
    (gind.Anderson(), "Anderson()", "#009e73"),
    (gind.NewtonCG(), "NewtonCG(), a dot for each step", "#e69f00"),
)


@dataclasses.dataclass(frozen=True)
class Recorded(Solver):
    """A solver that notes, at each of its points, the passes over the edges so far and the relative residual."""

    solver: Solver
    energy: Counted
    passes: list[int] = dataclasses.field(default_factory=list)
    residuals: list[float] = dataclasses.field(default_factory=list)

    def init(self, problem: Problem, z0: Tensor) -> Any:
        """That of the solver."""
        return self.solver.init(problem, z0)

    def step(self, problem: Problem, at: Iterate, state: Any) -> tuple[Tensor, Any]:
        """That of the solver."""
        self.note(float(at.residual / problem.inner.norm(at.fz)))
        return self.solver.step(problem, at, state)

    def note(self, residual: float) -> None:
        """One more point of the curve."""
        self.passes.append(self.energy.evaluations + self.energy.products)
        self.residuals.append(residual)


@torch.no_grad()
def record(solver: Solver, norm: float, stop: gind.Stop) -> Recorded:
    layer, x, graph = digits_layer(norm)
    energy = layer.bind(x, graph)
    assert isinstance(energy, gind.Energy)
    recorded = Recorded(solver, Counted(energy))
    solution = gind.fixed_point(recorded.energy, torch.zeros_like(x), solver=recorded, stop=stop, throw="ignore")
    recorded.note(float(solution.residual))
    return recorded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=PICTURE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
    for solver, label, color in CURVES:
        curve = record(solver, 6.0, gind.Stop(1e-10, 340))
        marker = "o" if isinstance(solver, gind.NewtonCG) else None
        axes.semilogy(curve.passes, curve.residuals, marker=marker, color=color, label=label, markersize=4)
        print(f"{label}: residual {curve.residuals[-1]:.1e} after {curve.passes[-1]} passes over the edges")
    axes.set_xlabel("passes over the edges: f(Z), E(Z) and Hessian products")
    axes.set_ylabel("relative residual ‖Z - f(Z)‖ / ‖f(Z)‖")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(loc="upper right", bbox_to_anchor=(1, 0.93), frameon=False)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=140)


if __name__ == "__main__":
    main()
