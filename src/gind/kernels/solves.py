"""Whole solves, compiled by numba: the loops of `equilibrium` for the map of `diffusion`, without a call per operation.

What they compute is defined there; a small graph spends most of its time between operations, and here there are none.
A `layer` is a tuple of arrays, made by `onecall.Layer`. The edge loops are those of the fused operators: the C function
at `address` (`in_c`), or numba's. Problems that are done rest: their rows are left alone.
All sums run in a fixed order on one thread.

Without a mask every step stays among the z = aK if it starts there. Then (`reduced`) the loops keep a and its product
p = aKKᵀ in place of z: potentials are s ⊙ p + C, ⟨z, z'⟩ = ⟨a, p'⟩, and a step has one product instead of two. Such a
layer has panels of KKᵀ in place of those of Kᵀ.
"""

import functools
import math
from typing import Any

import numpy as np
from numba import njit

from gind.kernels import foreign, loops, parts, prefetch, scalar, tile
from gind.kernels.foreign import call_edges
from gind.kernels.parts import BLOCK, gather, lerp, multiply, potentials
from gind.kernels.scalar import FASTMATH
from gind.kernels.tile import PANEL, ROWS

__all__ = ["CODES", "PANEL", "conjugate_gradients", "descend", "product"]

CODES = ("CONVERGED", "MAX_STEPS", "STALLED", "NONFINITE", "ASK")
CONVERGED, MAX_STEPS, STALLED, NONFINITE, ASK = range(5)
_RENEW = 32  # steps after which products that were carried along are made anew: rounding errors add up in them
_CHECKSUM = loops.checksum(foreign, loops, parts, prefetch, scalar, tile)
# a sum may be cut into vectors: always in the same way, since no other thread has a part
_SUMS = FASTMATH | {"reassoc"}
_flux, _flux_jvp = loops.scatter(0, False, False), loops.scatter(1, False, False)  # the fused operators' own edge loops


def _compile(function: Any, name: str) -> loops.Kernel:
    return loops.compile_as(f"{name}_{_CHECKSUM:08x}", function, parallel=False)


# Inner products, problem by problem.


@njit(fastmath=FASTMATH, error_model="numpy")
def _rest(done, batch, idle):
    for i in range(len(idle)):
        idle[i] = done[batch[i]]


@njit(fastmath=_SUMS, error_model="numpy")
def _squares(z, fz, p, fp):
    """⟨z - fz, p - fp⟩, ⟨fz, fp⟩."""
    gap, size = 0.0, 0.0
    for c in range(len(z)):
        gap += np.float64(z[c] - fz[c]) * np.float64(p[c] - fp[c])
        size += np.float64(fz[c]) * np.float64(fp[c])
    return gap, size


@njit(fastmath=_SUMS, error_model="numpy")
def _row_dot(a, b):
    total = a.dtype.type(0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return np.float64(total)


@njit(inline="always")
def _root(square):
    """√square; rounding may leave a product of the `reduced` kind below zero."""
    return 0.0 if square < 0 else math.sqrt(square)


@njit(fastmath=FASTMATH, error_model="numpy")
def _measure(z, fz, p, fp, batch, idle, eps, problems):
    """Absolute and relative residual of the problems that are not done: see `iterate.measure`.

    p and fp are z and fz themselves, or their products if `reduced`.
    """
    absolute, relative, start, done = problems[0], problems[1], problems[2], problems[5]
    for k in range(len(done)):
        if not done[k]:
            absolute[k] = relative[k] = 0
    for i in range(len(z)):
        if len(idle) and idle[i]:
            continue
        k = batch[i] if len(batch) else 0
        gap, size = _squares(z[i], fz[i], p[i], fp[i])
        absolute[k] += gap
        relative[k] += size
    for k in range(len(done)):
        if done[k]:
            continue
        gap, size = _root(absolute[k]), _root(relative[k])
        if not math.isfinite(size):
            absolute[k] = relative[k] = np.inf
        else:
            absolute[k] = gap
            relative[k] = gap if gap == 0 else gap / max(size, eps * start[k])


@njit(fastmath=FASTMATH, error_model="numpy")
def _judge(tol, patience, problems):
    """Which problems are done now, and how the whole solve stands: -1 to go on."""
    absolute, relative, _, best, since, done, reached, allowance = problems
    for p in range(len(done)):
        if not math.isfinite(absolute[p]):
            return NONFINITE
    for p in range(len(done)):
        waiting = not absolute[p] < best[p] and since[p] + 1 >= patience
        if not done[p] and waiting and not relative[p] <= tol and math.isnan(allowance[p]):
            return ASK
    everything, all_reached = True, True
    for p in range(len(done)):
        if not done[p]:
            since[p] = 0 if absolute[p] < best[p] else since[p] + 1
            best[p] = min(best[p], absolute[p])
            reached[p] = relative[p] <= tol
            done[p] = reached[p] or (since[p] >= patience and absolute[p] <= allowance[p])
            allowance[p] = np.nan  # what is not done moves on
        everything = everything and done[p]
        all_reached = all_reached and reached[p]
    if everything:
        return CONVERGED if all_reached else STALLED
    return -1


@njit(fastmath=FASTMATH, error_model="numpy")
def _advance(z, fz, x, step, momentum, batch, idle):
    """x' = z + step (f(z) - z), z' = x' + momentum (x' - x)."""
    for i in range(len(z)):
        if len(idle) and idle[i]:
            continue
        p = batch[i] if len(batch) else 0
        near, carry = step[p], momentum[p]
        rest = z.dtype.type(1) - near
        here, there, last = z[i], fz[i], x[i]
        for c in range(len(here)):
            new = lerp(here[c], there[c], near, rest)
            here[c] = new + carry * (new - last[c])
            last[c] = new


@njit(fastmath=FASTMATH, error_model="numpy")
def _product(a, panels, out):
    for first in range(0, len(a), ROWS):
        multiply(a, first, min(first + ROWS, len(a)), panels, out)


@functools.cache
def product() -> loops.Kernel:
    """out = a @ B, B cut into panels; a row does not see the others."""

    def kernel(a, panels, out):
        _product(a, panels, out)

    return _compile(kernel, "product")


# The solves.


@functools.cache
def descend(in_c: bool) -> loops.Kernel:
    """z' = x' + momentum (x' - x) until every problem is done, as `iterate` has it with Nesterov or Picard.

    If `reduced`, z and x hold the a of both, and `products` their aKKᵀ.
    """

    def kernel(address, layer, z, x, products, reduced, step, momentum, tol, eps, steps, max_steps, patience, problems):
        panels, transposed, C, s, before, after, mask, ptr, head, weight, batch = layer
        start, done = problems[2], problems[5]
        fz, y, flux = np.empty_like(z), np.empty_like(C), np.empty_like(C)
        p, px = products
        idle = np.zeros(len(batch), np.bool_)
        while True:
            _rest(done, batch, idle)
            if reduced:
                potentials(p, transposed[:0], s, C, before, batch, idle, y)
            else:
                potentials(z, transposed, s, C, before, batch, idle, y)
            if in_c:
                call_edges(address, y, y, ptr, head, weight, flux)
            else:
                _flux(y, y, y, ptr, head, weight, idle, flux, BLOCK)
            gather(flux, s, after, transposed if reduced else panels, mask, fz[:0], batch, idle, fz)
            image, own = (flux, p) if reduced else (fz, z)
            _measure(z, image, own, fz, batch, idle, eps, problems)
            for k in range(len(start)):
                if start[k] < 0:
                    start[k] = problems[0][k]
            state = _judge(tol, patience, problems)
            if state >= 0:
                return state, steps
            if steps == max_steps:
                _measure(z, image, own, fz, batch, idle, eps, problems)  # the first residual is known now
                return MAX_STEPS, steps
            _rest(done, batch, idle)
            _advance(z, image, x, step, momentum, batch, idle)
            if reduced:
                _advance(p, fz, px, step, momentum, batch, idle)
            steps += 1
            if reduced and steps % _RENEW == 0:
                _product(z, transposed, p)
                _product(x, transposed, px)

    return _compile(kernel, f"descend_{in_c}")


@njit(fastmath=FASTMATH, error_model="numpy")
def _dots(a, b, batch, idle, out):
    """⟨a, b⟩ per problem, rows in the precision of a and their sum in float64; resting problems get 0."""
    out[:] = 0
    for i in range(len(a)):
        if len(idle) == 0 or not idle[i]:
            out[batch[i] if len(batch) else 0] += _row_dot(a[i], b[i])


@njit(fastmath=FASTMATH, error_model="numpy")
def _add(x, p, alpha, sign, batch, idle):
    """x' = x ± αp."""
    for i in range(len(x)):
        if len(idle) == 0 or not idle[i]:
            own = x.dtype.type(sign * alpha[batch[i] if len(batch) else 0])
            xi, pi = x[i], p[i]
            for c in range(len(xi)):
                xi[c] += own * pi[c]


@njit(fastmath=FASTMATH, error_model="numpy")
def _turn(p, r, beta, batch, idle):
    """p' = r + β p."""
    for i in range(len(p)):
        if len(idle) == 0 or not idle[i]:
            own, line, other = p.dtype.type(beta[batch[i] if len(batch) else 0]), p[i], r[i]
            for c in range(len(line)):
                line[c] = other[c] + own * line[c]


@functools.cache
def conjugate_gradients(in_c: bool) -> loops.Kernel:
    """x and what is left of r = rhs, until ‖r‖² ≤ target in every problem, as in `equilibrium.linear`.

    The matrix is the Hessian A: u ↦ u + m ⊙ [Ĝᵀ(w ω g σ'(y) ⊙ ĜuKᵀ)K], y the potentials times g. With `once`, x is only
    its product with r. `squares` are ‖r‖² at the end.

    If `reduced`, rhs need not be a multiple of K, but what A adds to it is: the start is rhs instead of 0, of which
    `products` bring rhs Kᵀ. Then x is the a of what the solution adds to it, and r that of what is left.
    """

    def kernel(address, layer, y, x, r, products, reduced, target, squares, max_steps, once):
        panels, transposed, C, s, before, after, mask, ptr, head, weight, batch = layer
        t, flux, p, ap = np.empty_like(y), np.empty_like(y), np.zeros_like(r), np.empty_like(r)
        new, factor = np.zeros_like(target), np.zeros_like(target)
        done, idle = np.zeros(len(target), np.bool_), np.zeros(len(batch), np.bool_)
        pr, pp = products
        steps, first = 0, reduced
        while True:
            if not first:
                _turn(p, r, factor, batch, idle)
                if reduced:
                    _turn(pp, pr, factor, batch, idle)
            if not once and not first:
                if steps == int(reduced):
                    _dots(r, pr if reduced else r, batch, idle, squares)
                active = 0
                for g in range(len(squares)):
                    done[g] = not (squares[g] > target[g] and math.isfinite(squares[g]))
                    active += not done[g]
                if steps == max_steps or active == 0:
                    return steps
                _rest(done, batch, idle)
            if reduced:
                potentials(pr if first else pp, transposed[:0], s, C[:0], before, batch, idle, t)
            else:
                potentials(p, transposed, s, C[:0], before, batch, idle, t)
            if in_c:
                call_edges(address, y, t, ptr, head, weight, flux)
            else:
                _flux_jvp(y, t, t, ptr, head, weight, idle, flux, BLOCK)
            if first:
                gather(flux, s, after, transposed, mask, ap[:0], batch, idle, pr)
                r[:] = flux
                steps, first = 1, False
                continue
            gather(flux, s, after, transposed if reduced else panels, mask, pp if reduced else p, batch, idle, ap)
            if once:
                _turn(x, ap, factor, batch, idle)
                return 0
            _dots(p, ap, batch, idle, new)
            for g in range(len(squares)):
                factor[g] = squares[g] / new[g] if new[g] > 0 else 0.0
            _add(x, p, factor, 1, batch, idle)
            _add(pr if reduced else r, ap, factor, -1, batch, idle)
            if reduced:
                _add(r, p, factor, -1, batch, idle)
                _add(r, flux, factor, -1, batch, idle)
            _dots(r, pr if reduced else r, batch, idle, new)
            for g in range(len(squares)):
                if not done[g]:
                    factor[g], squares[g] = new[g] / squares[g], new[g]
            steps += 1

    return _compile(kernel, f"conjugate_gradients_{in_c}")
