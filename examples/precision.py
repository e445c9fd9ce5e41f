"""What float32 can reach on the digits graph, and what the rounding allowance says: a Markdown table.

Run with `python examples/precision.py`.
"""

import copy
from collections.abc import Iterator

import torch
from solvers import digits_layer

import gind


@torch.no_grad()
def row(norm: float) -> str:
    layer, x, graph = digits_layer(norm)
    single = copy.deepcopy(layer).float()
    exact = copy.deepcopy(single).double()  # the same numbers as `single`, in better arithmetic
    for each, tol in ((single, 0.0), (exact, 1e-9)):
        each.solver, each.stop = gind.NewtonCG(), gind.Stop(tol, 200)
    _, reached = single(x.float(), graph, return_solution=True)
    _, truth = exact(x.float().double(), graph, return_solution=True)
    z = reached.value
    f, f_exact = single.bind(x.float(), graph), exact.bind(x.float().double(), graph)
    assert isinstance(f, gind.Energy)
    error = float((f(z) - f_exact(z.double())).norm())
    residual, distance = float((z - f(z)).norm()), float((z - truth.value).norm())
    status = f"{float(reached.residual):.0e}, {reached.status.name}"
    sizes = (error, float(f.rounding(z)), residual, distance, float(reached.bound))
    return f"| {norm:g} | {status} | " + " | ".join(f"{size:.1e}" for size in sizes) + " |"


def table() -> Iterator[str]:
    yield "| ‖K‖ | relative residual, status | error of f(Z) | allowance | ‖Z - f(Z)‖ | ‖Z - Z*‖ | `bound` |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    for norm in (0.9, 3.0, 6.0, 30.0):
        yield row(norm)


def main() -> None:
    torch.set_num_threads(1)
    for line in table():
        print(line, flush=True)


if __name__ == "__main__":
    main()
