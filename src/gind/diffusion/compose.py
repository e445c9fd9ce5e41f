"""`Composition`: the equilibrium of several updates in a row, what the paper calls layers."""

import dataclasses
from collections.abc import Sequence
from typing import Literal, final, overload

from torch import Tensor, nn

from gind.diffusion.layer import Diffusion
from gind.diffusion.map import DiffusionMap, LiveMap, inner_product, zeros
from gind.diffusion.precision import without_autocast
from gind.diffusion.steps import repeat_all
from gind.equilibrium import Adjoint, Implicit, Picard, Solution, Solver, Stop, fixed_point
from gind.equilibrium.descent import Repeatable
from gind.equilibrium.energy import Map
from gind.equilibrium.solution import Throw
from gind.graph import Graph

__all__ = ["Composition"]


class Composition(nn.Module):
    """Z = T_L(... T_1(Z)) with T_l(Z) = (1 - α)Z + αf_l(Z), each f_l with its own K, U and γ (section 5 of the paper).

    A composition of gradient maps is no gradient map: no energy, no bound. For depth with guarantees use a wide K
    (`flux_channels`), or a stack of certified layers. The layers' own solvers are not used, the output is read as
    by the first of them.
    """

    def __init__(
        self,
        layers: Sequence[Diffusion],
        *,
        alpha: float = 1.0,
        solver: Solver | None = None,
        stop: Stop | None = None,
        adjoint: Adjoint | None = None,
        throw: Throw = "warn",
    ) -> None:
        super().__init__()
        if not layers or not all(isinstance(layer, Diffusion) for layer in layers):
            raise TypeError(f"Composition needs at least one Diffusion, got {layers!r}.")
        if len({(layer.channels, layer.scaling) for layer in layers}) > 1:
            raise ValueError("The layers of a Composition must agree in `channels` and `scaling`.")
        if not 0 < alpha <= 1:
            raise ValueError(f"`alpha` must lie in (0, 1], got {alpha}.")
        self.layers = nn.ModuleList(layers)
        self.alpha = alpha
        self.solver = Picard(1.0) if solver is None else solver
        self.stop = Stop() if stop is None else stop
        self.adjoint = Implicit() if adjoint is None else adjoint
        self.throw: Throw = throw

    def reset_parameters(self) -> None:
        """Those of every layer."""
        for layer in self._layers():
            layer.reset_parameters()

    @overload
    def forward(
        self, b: Tensor, graph: Graph, *, z0: Tensor | None = None, return_solution: Literal[False] = False
    ) -> Tensor: ...

    @overload
    def forward(
        self, b: Tensor, graph: Graph, *, z0: Tensor | None = None, return_solution: Literal[True]
    ) -> tuple[Tensor, Solution]: ...

    def forward(
        self, b: Tensor, graph: Graph, *, z0: Tensor | None = None, return_solution: bool = False
    ) -> Tensor | tuple[Tensor, Solution]:
        """(n, h) to (n, h)."""
        first = self._layers()[0]
        with without_autocast(b, first.K.dtype) as given:
            maps = [layer.bind(given, graph) for layer in self._layers()]
            solution = fixed_point(
                self._chain(maps),
                zeros(given.detach()) if z0 is None else z0.detach(),
                solver=self.solver,
                stop=self.stop,
                adjoint=self.adjoint,
                throw=self.throw,
                inner=inner_product(graph),
            )
            out = first.read(solution.value, given, maps[0])
        return (out, solution) if return_solution else out

    def extra_repr(self) -> str:
        """The options of the solve."""
        throw = "" if self.throw == "warn" else f", throw={self.throw!r}"
        return f"alpha={self.alpha}, solver={self.solver}, stop={self.stop}, adjoint={self.adjoint}{throw}"

    def _chain(self, maps: Sequence[DiffusionMap]) -> Map:
        """T_L(... T_1(Z)); a single map stays what it is, with what it can do in one call."""
        if len(maps) == 1 and isinstance(maps[0], LiveMap):
            return dataclasses.replace(maps[0], alpha=self.alpha)
        return _Chain(tuple(maps), self.alpha)

    def _layers(self) -> list[Diffusion]:
        return [layer for layer in self.layers if isinstance(layer, Diffusion)]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class _Chain(Repeatable):
    """T_L(... T_1(Z))."""

    maps: tuple[DiffusionMap, ...]
    alpha: float

    def __call__(self, z: Tensor) -> Tensor:
        for one in self.maps:
            z = one.relaxed(z, self.alpha)
        return z

    def repeat(self, z: Tensor, times: int) -> Tensor | None:
        """In compiled code on the CPU, where there is some for these options and it pays."""
        live = [dataclasses.replace(one, alpha=self.alpha) for one in self.maps if isinstance(one, LiveMap)]
        return repeat_all(live, z, times) if len(live) == len(self.maps) else None
