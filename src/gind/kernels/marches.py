"""Many steps of maps without an energy in one call, compiled by numba: the published iteration.

    z ← (1 - α) z' + α f(z'),   z' = z - pull ⊙ Gᵀw G(s z),   f(z) = -m ⊙ (s ω Gᵀwσ(G g(s zKᵀ + C)) K)

with ω = γ over the spread of σ in this very step; several layers take turns. What it computes is defined by
`diffusion.map.LiveMap`.

Without a mask, and from z = 0, every z is xK: its potentials are s ⊙ xKKᵀ + C, and x ← (1 - α) x' - α s ω Gᵀwσ(·) has
one product less per step (`reduced`).

`retreat` carries a gradient back through steps that were recorded. There the start z₀ = x₀K is a constant, whatever K
does: of z = base K₀ + (x - base)K only the second part moves with K, and `base` is what steps without flux make of x₀.
"""

import functools
import math

import numpy as np
from numba import njit

from gind.kernels import foreign, loops, parts, prefetch, scalar, tile
from gind.kernels.foreign import call_edges, call_moments, call_vjp
from gind.kernels.parts import BLOCK, STRIP, gather, lerp, multiply, potentials
from gind.kernels.scalar import FASTMATH

__all__ = ["KINDS", "march", "retreat"]

KINDS = ("none", "deviation", "layer", "instance")
DEVIATION, LAYER, INSTANCE = 1, 2, 3
_CHECKSUM = loops.checksum(foreign, loops, parts, prefetch, scalar, tile)
_flux, _linear = loops.scatter(0, False, False), loops.scatter(0, True, False)
_spread, _linear_spread = loops.moments(False, False, False), loops.moments(True, False, False)
_flux_vjp, _linear_vjp = loops.flux_vjp(False, False), loops.flux_vjp(True, False)
_jvp, _linear_jvp = loops.scatter(1, False, False), loops.scatter(1, True, False)
_TINY = np.finfo(np.float64).tiny


@njit(fastmath=FASTMATH, error_model="numpy")
def _spread_of(sums, norm, g, c):
    """What γ is divided by, in graph g and channel c: see `LiveNorm.scale`."""
    _, mass, kind, width, centered, eps = norm
    if kind == INSTANCE:
        return math.sqrt(sums[1, g, c] / max(mass[g], _TINY) + eps)
    first, square = 0.0, 0.0
    for k in range(sums.shape[2]):
        first += sums[0, g, k]
        square += sums[1, g, k]
    if kind == LAYER:
        return math.sqrt(square / max(mass[g], _TINY) / width + eps)
    count = max(mass[g] * width, 1.0)
    variance = square / count - ((first / count) ** 2 if centered else 0.0)
    return math.sqrt(max(variance, _TINY)) + eps


@njit(fastmath=FASTMATH, error_model="numpy")
def _live_gain(sums, norm, after, gain):
    """ω = γ over the spread, times the constant gain. Padded channels have γ = 0."""
    gamma, kind = norm[0], norm[2]
    for g in range(len(gain)):
        spread = _spread_of(sums, norm, g, 0)
        for c in range(gain.shape[1]):
            if kind == INSTANCE:
                spread = _spread_of(sums, norm, g, c)
            gain[g, c] = gamma[c] / gamma.dtype.type(spread)
            if len(after):
                gain[g, c] *= after[g, c]


@njit(fastmath=FASTMATH, error_model="numpy")
def _live_gain_vjp(sums, norm, after, gain, slope, slope_gamma, cotangent):
    """From ∂L/∂ω: adds ∂L/∂γ to `slope_gamma`, and sets those of the moments."""
    mass, kind, width, centered, eps = norm[1], norm[2], norm[3], norm[4], norm[5]
    for g in range(len(gain)):
        spread = _spread_of(sums, norm, g, 0)
        total, first = 0.0, 0.0  # ∂L/∂spread, and Σwσ
        for c in range(gain.shape[1]):
            own = _spread_of(sums, norm, g, c) if kind == INSTANCE else spread
            slope_gamma[c] += slope[g, c] / own * (after[g, c] if len(after) else 1.0)
            part = -slope[g, c] * gain[g, c] / own
            total += part
            first += sums[0, g, c]
            cotangent[0, g, c] = 0
            cotangent[1, g, c] = part / (2 * own) / max(mass[g], _TINY)
            cotangent[2, g, c] = 0
        if kind == LAYER:
            cotangent[1, g, :] = total / (2 * spread) / max(mass[g], _TINY) / width
        elif kind == DEVIATION:
            count, root = max(mass[g] * width, 1.0), spread - eps
            variance = total / (2 * root) if root * root > 2 * _TINY else 0.0
            cotangent[1, g, :] = variance / count
            cotangent[0, g, :] = -2 * variance * first / count / count if centered else 0.0


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


@njit(fastmath=FASTMATH, error_model="numpy")
def _inject(C, gain, batch, y):
    """y = g ⊙ C: the potentials of z = 0."""
    for i in range(len(C)):
        row, given = y[i], C[i]
        row[:] = given
        if len(gain):
            own = gain[batch[i] if len(batch) else 0]
            for c in range(len(row)):
                row[c] *= own[c]


@njit(fastmath=FASTMATH, error_model="numpy")
def _scale_rows(a, factor, out):
    for i in range(len(a)):
        for c in range(a.shape[1]):
            out[i, c] = factor[i] * a[i, c]


@njit(fastmath=FASTMATH, error_model="numpy")
def _take_rows(z, factor, a):
    """z ← z - factor ⊙ a."""
    for i in range(len(z)):
        for c in range(z.shape[1]):
            z[i, c] -= factor[i] * a[i, c]


@functools.cache
def march(in_c: bool, linear: bool) -> loops.Kernel:
    """So many steps from z, each through all layers, in place; `addresses` are those of flux, spread, linear flux.

    `pulls` and `norms` are those of the layers, `fresh` says that z is 0 at first. A single layer may be recorded:
    `records` hold of every step z', y, flux, ω, moments, and base' (`reduced`) or the flux as it meets K; or nothing.
    """

    def kernel(addresses, layers, z, base, pulls, norms, alpha, steps, reduced, fresh, records):
        C, graphs = layers[0][2], len(norms[0][1])
        idle, fz = np.zeros(0, np.bool_), np.empty_like(z)
        y, flux = np.empty_like(C), np.empty_like(C)
        gain, sums = np.empty((graphs, C.shape[1]), C.dtype), np.empty((3, graphs, C.shape[1]))
        pulled, rest = np.empty_like(z), z.dtype.type(1) - alpha
        for turn in range(steps * len(layers)):
            k, number = turn // len(layers), turn % len(layers)
            panels, transposed, C, s, before, after, mask, ptr, head, weight, batch = layers[number]
            pull, norm = pulls[number], norms[number]
            for state in (z, base):
                if len(pull) and len(state):
                    _scale_rows(state, s, pulled)
                    if in_c:
                        call_edges(addresses[2], pulled, pulled, ptr, head, weight, fz)
                    else:
                        _linear(pulled, pulled, pulled, ptr, head, weight, idle, fz, BLOCK)
                    _take_rows(state, pull, fz)
            if len(base):
                records[5][k] = base
                base *= rest
            if len(records[0]):
                records[0][k] = z
                y, flux, gain, sums = records[1][k], records[2][k], records[3][k], records[4][k]
            if fresh and turn == 0:
                _inject(C, before, batch, y)
            else:
                potentials(z, transposed, s, C, before, batch, idle, y)
            if norm[2]:
                if in_c:
                    call_moments(addresses[1], y, ptr, head, weight, batch, flux, sums, graphs)
                elif linear:
                    _linear_spread(y, ptr, head, weight, batch, flux, sums, BLOCK)
                else:
                    _spread(y, ptr, head, weight, batch, flux, sums, BLOCK)
                _live_gain(sums, norm, after, gain)
            elif in_c:
                call_edges(addresses[0], y, y, ptr, head, weight, flux)
            elif linear:
                _linear(y, y, y, ptr, head, weight, idle, flux, BLOCK)
            else:
                _flux(y, y, y, ptr, head, weight, idle, flux, BLOCK)
            own = gain if norm[2] else after
            if reduced:
                _mix_flux(z, flux, s, own, batch, alpha)
            else:
                sent = flux
                if len(records[6]):
                    sent = records[6][k]
                    sent[:] = flux
                gather(sent, s, own, panels, mask, fz[:0], batch, idle, fz)
                _mix(z, fz, alpha)

    return loops.compile_as(f"march_{in_c}_{linear}_{_CHECKSUM:08x}", kernel, parallel=False)


@njit(fastmath=FASTMATH, error_model="numpy")
def _split(flux, s, gain, batch, back, slope, t):
    """From ∂L/∂(-s ω flux): ∂L/∂ω per graph and channel, and t = ∂L/∂flux."""
    slope[:] = 0
    for i in range(len(flux)):
        g = batch[i] if len(batch) else 0
        for c in range(flux.shape[1]):
            own = -s[i] * back[i, c]
            t[i, c] = own * gain[g, c] if len(gain) else own
            if len(slope):
                slope[g, c] += own * flux[i, c]


@functools.cache
def retreat(in_c: bool, linear: bool) -> loops.Kernel:
    """∂L/∂z before recorded steps from `grad`, the one after them, in place.

    `addresses` are those of flux_jvp, spread_vjp, linear flux. Fills `slopes`: for every step ∂L/∂y, and if not
    `reduced` the cotangent of f; and ∂L/∂γ. The products that give ∂L/∂K remain, for the
    caller to do for all steps at once. There is no gain before σ.
    """

    def kernel(addresses, layer, grad, pull, norm, alpha, reduced, records, slopes):
        panels, transposed, C, s, _, after, mask, ptr, head, weight, batch = layer
        kind, graphs, channels = norm[2], len(norm[1]), C.shape[1]
        idle, rest = np.zeros(0, np.bool_), grad.dtype.type(1) - alpha
        back, t = np.empty_like(C), np.empty_like(C)
        slope, cotangent = np.zeros((graphs, channels)), np.zeros((3, graphs, channels), C.dtype)
        step, pulled = np.empty_like(grad), np.empty_like(grad)
        all_y, all_f, slope_gamma = slopes
        for k in range(len(records[0]) - 1, -1, -1):
            y, flux, gain, sums = records[1][k], records[2][k], records[3][k], records[4][k]
            own, slope_y = gain if kind else after, all_y[k]
            for i in range(len(grad)):
                for c in range(grad.shape[1]):
                    step[i, c] = alpha * grad[i, c] * (mask[i, c] if len(mask) else grad.dtype.type(1))
                    grad[i, c] *= rest
            if reduced:
                _split(flux, s, own, batch, step, slope, t)
            else:
                all_f[k] = step
                for first in range(0, len(step), STRIP):
                    multiply(step, first, min(first + STRIP, len(step)), transposed, back)
                _split(flux, s, own, batch, back, slope, t)
            if kind:
                _live_gain_vjp(sums, norm, after, gain, slope, slope_gamma, cotangent)
                if in_c:
                    call_vjp(addresses[1], y, t, cotangent, ptr, head, weight, batch, slope_y, graphs)
                elif linear:
                    _linear_vjp(y, t, cotangent, ptr, head, weight, batch, slope_y, BLOCK)
                else:
                    _flux_vjp(y, t, cotangent, ptr, head, weight, batch, slope_y, BLOCK)
            elif in_c:
                call_edges(addresses[0], y, t, ptr, head, weight, slope_y)
            elif linear:
                _linear_jvp(y, t, t, ptr, head, weight, idle, slope_y, BLOCK)
            else:
                _jvp(y, t, t, ptr, head, weight, idle, slope_y, BLOCK)
            _scale_rows(slope_y, s, back)
            for first in range(0, len(step), STRIP):
                multiply(back, first, min(first + STRIP, len(step)), transposed if reduced else panels, step)
            grad += step
            if len(pull):
                _scale_rows(grad, pull, pulled)
                if in_c:
                    call_edges(addresses[2], pulled, pulled, ptr, head, weight, step)
                else:
                    _linear(pulled, pulled, pulled, ptr, head, weight, idle, step, BLOCK)
                _take_rows(grad, s, step)

    return loops.compile_as(f"retreat_{in_c}_{linear}_{_CHECKSUM:08x}", kernel, parallel=False)
