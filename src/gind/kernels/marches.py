"""Many steps of a map without an energy in one call, compiled by numba: the published iteration.

    z ← (1 - α) z' + α f(z'),   z' = z - pull ⊙ Gᵀw G(s z),   f(z) = -m ⊙ (s ω Gᵀwσ(G g(s zKᵀ + C)) K)

with ω = γ over the spread of σ in this very step. What it computes is defined by `diffusion.map.LiveMap`.

Without a mask, and from z = 0, every z is xK: its potentials are s ⊙ xKKᵀ + C, and x ← (1 - α) x' - α s ω Gᵀwσ(·) has
one product less per step (`reduced`).
"""

import functools
import math

import numpy as np
from numba import njit

from gind.kernels import foreign, loops, parts, prefetch, scalar, tile
from gind.kernels.foreign import call_edges, call_moments
from gind.kernels.parts import BLOCK, gather, lerp, potentials
from gind.kernels.scalar import FASTMATH

__all__ = ["KINDS", "march"]

KINDS = ("none", "deviation", "layer", "instance")
DEVIATION, LAYER, INSTANCE = 1, 2, 3
_CHECKSUM = loops.checksum(foreign, loops, parts, prefetch, scalar, tile)
_flux, _linear = loops.scatter(0, False, False), loops.scatter(0, True, False)
_spread = loops.moments(False, False, False)


@njit(fastmath=FASTMATH, error_model="numpy")
def _live_gain(sums, norm, after, gain):
    """ω = γ over the spread, times the constant gain: see `LiveNorm.scale`. Padded channels have γ = 0."""
    gamma, mass, kind, width, centered, eps = norm
    for g in range(len(gain)):
        first, square = 0.0, 0.0
        for c in range(gain.shape[1]):
            first += sums[0, g, c]
            square += sums[1, g, c]
        if kind == DEVIATION:
            count = max(mass[g] * width, 1.0)
            variance = square / count - ((first / count) ** 2 if centered else 0.0)
            spread = math.sqrt(max(variance, np.finfo(np.float64).tiny)) + eps
        else:
            spread = math.sqrt(square / max(mass[g], np.finfo(np.float64).tiny) / width + eps)
        for c in range(gain.shape[1]):
            if kind == INSTANCE:
                spread = math.sqrt(sums[1, g, c] / max(mass[g], np.finfo(np.float64).tiny) + eps)
            gain[g, c] = gamma[c] / gamma.dtype.type(spread)
            if len(after):
                gain[g, c] *= after[g, c]


@njit(fastmath=FASTMATH, error_model="numpy")
def _mix(z, fz, alpha):
    """z ← (1 - α) z + α f."""
    rest = z.dtype.type(1) - alpha
    for i in range(len(z)):
        here, there = z[i], fz[i]
        for c in range(len(here)):
            here[c] = lerp(here[c], there[c], alpha, rest)


@njit(fastmath=FASTMATH, error_model="numpy")
def _mix_flux(x, flux, s, gain, batch, alpha):
    """x ← (1 - α) x - α s ω flux."""
    rest = x.dtype.type(1) - alpha
    for i in range(len(x)):
        here, there, factor = x[i], flux[i], -s[i]
        if len(gain):
            own = gain[batch[i] if len(batch) else 0]
            for c in range(len(here)):
                here[c] = lerp(here[c], there[c] * own[c] * factor, alpha, rest)
        else:
            for c in range(len(here)):
                here[c] = lerp(here[c], there[c] * factor, alpha, rest)


@functools.cache
def march(in_c: bool) -> loops.Kernel:
    """So many steps from z, in place; `addresses` are those of flux, linear flux and spread."""

    def kernel(addresses, layer, z, pull, norm, alpha, steps, reduced):
        panels, transposed, C, s, before, after, mask, ptr, head, weight, batch = layer
        kind = norm[2]
        y, flux, fz = np.empty_like(C), np.empty_like(C), np.empty_like(z)
        graphs = len(norm[1]) if kind else 0
        gain, sums, idle = (
            np.empty((graphs, C.shape[1]), C.dtype),
            np.empty((3, graphs, C.shape[1])),
            np.zeros(0, np.bool_),
        )
        pulled = np.empty_like(z) if len(pull) else z[:0]
        for _ in range(steps):
            if len(pull):
                for i in range(len(z)):
                    for c in range(z.shape[1]):
                        pulled[i, c] = s[i] * z[i, c]
                if in_c:
                    call_edges(addresses[1], pulled, pulled, ptr, head, weight, fz)  # type: ignore[call-arg]
                else:
                    _linear(pulled, pulled, pulled, ptr, head, weight, idle, fz, BLOCK)
                for i in range(len(z)):
                    for c in range(z.shape[1]):
                        z[i, c] -= pull[i] * fz[i, c]
            potentials(z, transposed, s, C, before, batch, idle, y)
            if kind:
                if in_c:
                    call_moments(addresses[2], y, ptr, head, weight, batch, flux, sums)  # type: ignore[call-arg]
                else:
                    _spread(y, ptr, head, weight, batch, flux, sums, BLOCK)
                _live_gain(sums, norm, after, gain)
            elif in_c:
                call_edges(addresses[0], y, y, ptr, head, weight, flux)  # type: ignore[call-arg]
            else:
                _flux(y, y, y, ptr, head, weight, idle, flux, BLOCK)
            own = gain if kind else after
            if reduced:
                _mix_flux(z, flux, s, own, batch, alpha)
            else:
                gather(flux, s, own, panels, mask, fz[:0], batch, idle, fz)
                _mix(z, fz, alpha)

    return loops.compile_as(f"march_{in_c}_{_CHECKSUM:08x}", kernel, parallel=False)
