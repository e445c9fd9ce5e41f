"""Many steps of maps without an energy on the CPU in one call, and their gradient: raw tensors in and out.

What is computed is defined by `diffusion.map.LiveMap`; see `marches` for the equations.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from gind.kernels.onecall import Layer, call

__all__ = ["Live", "Record", "Slopes", "Steps", "alternate"]


class Live(NamedTuple):
    """A normalization by the spread of the flux in the same step: `LiveNorm` after σ."""

    gamma: Tensor
    """(H,)"""
    mass: Tensor
    """(graphs,) float64: what the edges count"""
    kind: str
    """one of `marches.KINDS` but the first"""
    centered: bool
    eps: float


class Record(NamedTuple):
    """What a gradient needs of some steps."""

    arrays: tuple[Tensor, ...]
    """of every step: see `marches.march`"""
    reduced: bool
    moved: Tensor
    """x - base at the end, if `reduced`"""


class Slopes(NamedTuple):
    """A gradient: with respect to z, K, C and γ."""

    z: Tensor
    K: Tensor
    C: Tensor
    gamma: Tensor | None


@final
class Steps:
    """z ← (1 - α) z' + α f(z'), z' = z - pull ⊙ Gᵀw G(s z), of one layer."""

    def __init__(self, layer: Layer, pull: Tensor | None, live: Live | None, alpha: float) -> None:
        from gind.kernels import marches  # here: it needs numba

        self.layer, self.live, self._marches = layer, live, marches
        self.s = layer.constants[3]
        self.pull = self.s.new_empty(0) if pull is None else pull.detach().reshape(-1).contiguous()
        self.alpha = self.s.numpy().dtype.type(alpha)
        self.masked = len(layer.constants[6]) > 0
        self._last: tuple[Tensor, Tensor] | None = None  # the last z that was made in x, a copy, and its x

    def run(self, z0: Tensor, times: int, record: bool = False) -> tuple[Tensor, Record | None]:
        """The z after so many steps from z0."""
        x = self._origin(z0)
        reduced = x is not None
        z = self.layer.padded(z0.detach(), 1).clone() if x is None else x
        C = self.layer.constants[2]
        graphs, kept = 0 if self.live is None else len(self.live.mass), times if record else 0
        arrays = (
            z.new_empty(kept, *z.shape),
            z.new_empty(kept, *C.shape),
            z.new_empty(kept, *C.shape),
            z.new_empty(kept, graphs, C.shape[1]),
            torch.empty(kept, 3, graphs, C.shape[1], dtype=torch.float64),
            z.new_empty(kept if reduced else 0, *z.shape),
            z.new_empty(0 if reduced else kept, *C.shape),
        )
        base = z.clone() if reduced and record else z[:0]
        _march([self], z, base, times, reduced, not bool(z0.any()), arrays)
        end = self.layer.narrow(z @ self.layer.wide if reduced else z)
        if not record:
            if reduced:
                self._last = (end.clone(), z)
            return end, None
        return end, Record(arrays, reduced, z - base if reduced else base)

    def back(self, record: Record, grad: Tensor) -> Slopes:
        """From ∂L/∂z after recorded steps to that before them, and to the constants."""
        wide, channels = self.layer.wide, self.layer.constants[2].shape[1]
        wide_grad = self.layer.padded(grad.detach(), 1)
        cotangent = wide_grad @ wide.T if record.reduced else wide_grad.clone()
        z, y, _, _, _, base, sent = record.arrays
        slope_y, slope_f = torch.empty_like(y), cotangent.new_empty(len(sent), *cotangent.shape)
        slope_gamma = torch.zeros(channels, dtype=torch.float64)
        kernel, places = self._kernel("retreat", "flux_jvp", "spread_vjp")
        constants = (cotangent.numpy(), self.pull.numpy(), self._norm(), self.alpha)
        slopes = _numpy((slope_y, slope_f, slope_gamma))
        arguments = (self._layer(record.reduced), *constants, record.reduced, _numpy(record.arrays), slopes)
        call("steps", kernel, places, *arguments)
        slope_C = slope_y.sum(dim=0)
        slope_P = slope_y.mul_(self.s[:, None])
        across = _over_steps(slope_P, z)
        if record.reduced:
            free = across - _over_steps(slope_P, base)
            slope_K = (across + free.T) @ wide + record.moved.T @ wide_grad
            slope_z = torch.zeros_like(grad)  # an end of x, of which nobody asks
        else:
            slope_K, slope_z = across + _over_steps(sent, slope_f), self.layer.narrow(cotangent)
        return self._slopes(slope_z, slope_K, slope_C, slope_gamma)

    def _slopes(self, z: Tensor, K: Tensor, C: Tensor, gamma: Tensor) -> Slopes:
        rows = self.layer.rows
        own = None if self.live is None else gamma[:rows].to(z.dtype)
        return Slopes(z, K[:rows, : self.layer.channels], C[:, :rows], own)

    def _origin(self, z0: Tensor) -> Tensor | None:
        """x with z0 = xK, where there is one at hand."""
        wide = self.layer.rows > 2 * self.layer.channels  # then KKᵀ costs more than K twice
        if self.masked or wide or z0.requires_grad:
            return None
        if self._last is not None and torch.equal(z0, self._last[0]):
            return self._last[1].clone()
        return None if bool(z0.any()) else torch.zeros_like(self.layer.constants[2])

    def _layer(self, reduced: bool) -> tuple[Any, ...]:
        if not reduced:
            return self.layer.arrays
        panels = self.layer.panels(self.layer.wide @ self.layer.wide.T)
        return (self.layer.arrays[0], panels.numpy(), *self.layer.arrays[2:])

    def _kernel(self, name: str, *loops: str) -> tuple[Any, tuple[int, ...]]:
        places, kind = self.layer.loops(*loops)
        return getattr(self._marches, name)(*kind), places

    def _norm(self) -> tuple[Any, ...]:
        live = self.live
        if live is None:
            return (self.s[:0].numpy(), self.s.new_empty(0, dtype=torch.float64).numpy(), 0, 1.0, False, 0.0)
        gamma, mass = self.layer.padded(live.gamma.detach()[None], 1)[0], live.mass.contiguous()
        kind = self._marches.KINDS.index(live.kind)
        return (gamma.contiguous().numpy(), mass.numpy(), kind, float(len(live.gamma)), live.centered, float(live.eps))


def alternate(parts: Sequence[Steps], z0: Tensor, times: int) -> Tensor | None:
    """The z after so many turns of all layers from z0; None if they are not of one kind."""
    first = parts[0]
    kinds = {(part.layer.wide.shape, part.layer.activation, part.alpha, part.live is None) for part in parts}
    if len(kinds) > 1:
        return None
    z = first.layer.padded(z0.detach(), 1).clone()
    nothing, graphs = z[:0][None][:0], 0 if first.live is None else len(first.live.mass)
    gains, sums = z.new_empty(0, graphs, z.shape[1]), torch.empty(0, 3, graphs, z.shape[1], dtype=torch.float64)
    arrays = (nothing, nothing, nothing, gains, sums, nothing, nothing)
    _march(parts, z, z[:0], times, False, not bool(z0.any()), arrays)
    return first.layer.narrow(z)


def _march(
    parts: Sequence[Steps],
    z: Tensor,
    base: Tensor,
    times: int,
    reduced: bool,
    fresh: bool,
    arrays: tuple[Tensor, ...],
) -> None:
    """z after so many turns, in place: see `marches.march`."""
    kernel, places = parts[0]._kernel("march", "flux", "spread")
    layers, pulls, norms = zip(*((p._layer(reduced), p.pull.numpy(), p._norm()) for p in parts), strict=True)
    rest = (parts[0].alpha, times, reduced, fresh, _numpy(arrays))
    call("steps", kernel, places, layers, z.numpy(), base.numpy(), pulls, norms, *rest)


def _over_steps(a: Tensor, b: Tensor) -> Tensor:
    """Σ over steps and nodes of aᵀb."""
    return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])


def _numpy(tensors: tuple[Tensor, ...]) -> tuple[Any, ...]:
    return tuple(tensor.numpy() for tensor in tensors)
