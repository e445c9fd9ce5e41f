"""Whole solves, compiled by numba: the loops of `equilibrium` for the map of `diffusion`, without a call per operation.

What they compute is defined there; a small graph spends most of its time between operations, and here there are none.
A `layer` is a tuple of arrays, made by `onecall.Layer`. The edge loops are those of the fused operators: the C function
at `address` (`in_c`), or numba's. Problems that are done rest: their rows are left alone.
All sums run in a fixed order on one thread.
"""

import functools
import math
from typing import Any

import numpy as np
from numba import njit

from gind.kernels import foreign, loops, parts, prefetch, scalar, tile
from gind.kernels.foreign import call_edges
from gind.kernels.parts import BLOCK, gather, lerp, potentials
from gind.kernels.scalar import FASTMATH
from gind.kernels.tile import PANEL, WIDE

__all__ = ["CODES", "PANEL", "WIDE", "conjugate_gradients", "descend"]

CODES = ("CONVERGED", "MAX_STEPS", "STALLED", "NONFINITE", "ASK")
CONVERGED, MAX_STEPS, STALLED, NONFINITE, ASK = range(5)
_CHECKSUM = loops.checksum(foreign, loops, parts, prefetch, scalar, tile)
# a sum may be cut into vectors: always in the same way, since no other thread has a part
_SUMS = FASTMATH | {"reassoc"}
_flux, _flux_jvp = loops.scatter(0, False, False), loops.scatter(1, False, False)  # the fused operators' own edge loops
_linear_flux, _linear_jvp = loops.scatter(0, True, False), loops.scatter(1, True, False)


def _compile(function: Any, name: str) -> loops.Kernel:
    return loops.compile_as(f"{name}_{_CHECKSUM:08x}", function, parallel=False)


# Inner products, problem by problem.


@njit(fastmath=FASTMATH, error_model="numpy")
def _rest(done, batch, idle, resting):
    """Which nodes rest, and which of their ends."""
    for i in range(len(idle)):
        idle[i] = done[batch[i]]
    if len(idle):
        ends = len(resting) // len(idle)
        for i in range(len(resting)):
            resting[i] = idle[i // ends]


@njit(fastmath=_SUMS, error_model="numpy")
def _squares(z, fz):
    """‖z - fz‖², ‖fz‖²."""
    gap, size = 0.0, 0.0
    for c in range(len(z)):
        difference, value = np.float64(z[c] - fz[c]), np.float64(fz[c])
        gap += difference * difference
        size += value * value
    return gap, size


@njit(fastmath=_SUMS, error_model="numpy")
def _row_dot(a, b):
    total = a.dtype.type(0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return np.float64(total)


@njit(fastmath=FASTMATH, error_model="numpy")
def _measure(z, fz, batch, idle, eps, problems):
    """Absolute and relative residual of the problems that are not done: see `iterate.measure`."""
    absolute, relative, start, done = problems[0], problems[1], problems[2], problems[5]
    for p in range(len(done)):
        if not done[p]:
            absolute[p] = relative[p] = 0
    for i in range(len(z)):
        if len(idle) and idle[i]:
            continue
        p = batch[i] if len(batch) else 0
        gap, size = _squares(z[i], fz[i])
        absolute[p] += gap
        relative[p] += size
    for p in range(len(done)):
        if done[p]:
            continue
        gap, size = math.sqrt(absolute[p]), math.sqrt(relative[p])
        if not math.isfinite(size):
            absolute[p] = relative[p] = np.inf
        else:
            absolute[p] = gap
            relative[p] = gap if gap == 0 else gap / max(size, eps * start[p])


@njit(fastmath=FASTMATH, error_model="numpy")
def _keep(z, batch, tol, aim, steps, problems, kept):
    """Note where each problem is best within its tolerance."""
    absolute, relative, done = problems[0], problems[1], problems[5]
    place, gap, share, entered, mark = kept
    some = False
    for p in range(len(done)):
        mark[p] = not done[p] and relative[p] <= tol and not relative[p] <= aim and relative[p] < share[p]
        if mark[p]:
            entered[p] = steps if share[p] == np.inf else entered[p]
            gap[p], share[p], some = absolute[p], relative[p], True
    if some:
        for i in range(len(z)):
            if mark[batch[i] if len(batch) else 0]:
                place[i] = z[i]


@njit(fastmath=FASTMATH, error_model="numpy")
def _go_back(z, batch, aim, steps, patience, problems, kept):
    """Problems that came within so many steps ago, or broke down since, are where they were best, and done."""
    absolute, relative, done = problems[0], problems[1], problems[5]
    place, gap, share, entered, mark = kept
    some = False
    for p in range(len(done)):
        late = steps - entered[p] >= patience or not math.isfinite(absolute[p])
        late = late and share[p] < np.inf and not relative[p] <= aim
        done[p] = done[p] or late
        mark[p] = late and not relative[p] <= share[p]
        if mark[p]:
            absolute[p], relative[p], some = gap[p], share[p], True
    if some:
        for i in range(len(z)):
            if mark[batch[i] if len(batch) else 0]:
                z[i] = place[i]


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
def _advance(z, fz, x, rates, batch, idle):
    """x' = z + step (f(z) - z), z' = x' + momentum (x' - x); where it is heavy, z' = x' + momentum (z - z₋)."""
    step, momentum, rolls = rates[0], rates[1], rates[2]
    for i in range(len(z)):
        if len(idle) and idle[i]:
            continue
        p = batch[i] if len(batch) else 0
        near, carry = step[p], momentum[p]
        rest = z.dtype.type(1) - near
        here, there, last = z[i], fz[i], x[i]
        if rolls[p]:
            for c in range(len(here)):
                old = here[c]
                here[c] = lerp(old, there[c], near, rest) + carry * (old - last[c])
                last[c] = old
        else:
            for c in range(len(here)):
                new = lerp(here[c], there[c], near, rest)
                here[c] = new + carry * (new - last[c])
                last[c] = new


@njit(fastmath=FASTMATH, error_model="numpy")
def _calm(since, rates, calmed):
    """Problems whose residual has had no new minimum for a while go on by their other rates; whether there are any."""
    step, momentum, rolls, calm_step, calm_momentum, patience = rates
    some = False
    for k in range(len(rolls)):
        calmed[k] = rolls[k] and since[k] >= patience[k]
        if calmed[k]:
            rolls[k], step[k], momentum[k], some = False, calm_step[k], calm_momentum[k], True
    return some


@njit(fastmath=FASTMATH, error_model="numpy")
def _forget(z, x, calmed, batch):
    """x = z: no momentum of before."""
    for i in range(len(z)):
        if calmed[batch[i] if len(batch) else 0]:
            x[i] = z[i]


# The solves.


@functools.cache
def descend(in_c: bool, linear: bool) -> loops.Kernel:
    """Steps by rates until every problem is done, as `iterate` has it with Nesterov, HeavyBall or Picard.

    `linear`: σ is the identity; in C the address says so.
    """

    def kernel(address, layer, z, x, rates, goal, eps, steps, max_steps, patience, problems, kept):
        tol, aim = goal
        panels, transposed, C, s, before, after, mask, ptr, head, weight, batch = layer
        start, since, done = problems[2], problems[4], problems[5]
        fz, y, flux = np.empty_like(z), np.empty_like(C), np.empty_like(C)
        idle, calmed = np.zeros(len(batch), np.bool_), np.zeros(len(done), np.bool_)
        resting = np.zeros(len(s) if len(batch) else 0, np.bool_)
        while True:
            _rest(done, batch, idle, resting)
            potentials(z, transposed, s, C, before, batch, idle, y)
            if in_c:
                call_edges(address, y, y, ptr, head, weight, flux)
            elif linear:
                _linear_flux(y, y, y, ptr, head, weight, resting, flux, BLOCK)
            else:
                _flux(y, y, y, ptr, head, weight, resting, flux, BLOCK)
            gather(flux, s, after, panels, mask, fz[:0], batch, idle, fz)
            _measure(z, fz, batch, idle, eps, problems)
            for p in range(len(start)):
                if start[p] < 0:
                    start[p] = problems[0][p]
            _keep(z, batch, tol, aim, steps, problems, kept)
            _go_back(z, batch, aim, steps, patience, problems, kept)
            state = _judge(aim, patience, problems)
            if state < 0 and steps == max_steps:
                _rest(done, batch, idle, resting)
                _measure(z, fz, batch, idle, eps, problems)  # the first residual is known now
                state = MAX_STEPS
            if state >= 0:
                if state != ASK:
                    _go_back(z, batch, aim, steps, 0, problems, kept)
                return state, steps
            _rest(done, batch, idle, resting)
            if _calm(since, rates, calmed):
                _forget(z, x, calmed, batch)
            _advance(z, fz, x, rates, batch, idle)
            steps += 1

    return _compile(kernel, f"descend_{in_c}_{linear}")


@njit(fastmath=FASTMATH, error_model="numpy")
def _dots(a, b, batch, idle, out):
    """⟨a, b⟩ per problem, rows in the precision of a and their sum in float64; resting problems get 0."""
    out[:] = 0
    for i in range(len(a)):
        if len(idle) == 0 or not idle[i]:
            out[batch[i] if len(batch) else 0] += _row_dot(a[i], b[i])


@njit(fastmath=FASTMATH, error_model="numpy")
def _descend_by(x, p, r, ap, alpha, batch, idle):
    """x' = x + αp, r' = r - αAp."""
    for i in range(len(x)):
        if len(idle) == 0 or not idle[i]:
            own = x.dtype.type(alpha[batch[i] if len(batch) else 0])
            xi, pi, ri, api = x[i], p[i], r[i], ap[i]
            for c in range(len(xi)):
                xi[c] += own * pi[c]
                ri[c] -= own * api[c]


@njit(fastmath=FASTMATH, error_model="numpy")
def _turn(p, r, beta, batch, idle):
    """p' = r + β p."""
    for i in range(len(p)):
        if len(idle) == 0 or not idle[i]:
            own, line, other = p.dtype.type(beta[batch[i] if len(batch) else 0]), p[i], r[i]
            for c in range(len(line)):
                line[c] = other[c] + own * line[c]


@functools.cache
def conjugate_gradients(in_c: bool, linear: bool) -> loops.Kernel:
    """x and what is left of r = rhs, until ‖r‖² ≤ target in every problem, as in `equilibrium.linear`.

    The matrix is the Hessian u ↦ u + m ⊙ [Ĝᵀ(w ω g σ'(y) ⊙ ĜuKᵀ)K], y the potentials times g. With `once`, x is only
    its product with r.
    """

    def kernel(address, layer, y, x, r, target, max_steps, once):
        panels, transposed, C, s, before, after, mask, ptr, head, weight, batch = layer
        t, flux, p, ap = np.empty_like(y), np.empty_like(y), np.zeros_like(r), np.empty_like(r)
        rr, new, factor = np.ones_like(target), np.zeros_like(target), np.zeros_like(target)
        done, idle = np.zeros(len(target), np.bool_), np.zeros(len(batch), np.bool_)
        resting = np.zeros(len(s) if len(batch) else 0, np.bool_)
        steps = 0
        while True:
            _turn(p, r, factor, batch, idle)
            if not once:
                if steps == 0:
                    _dots(r, r, batch, idle, rr)
                active = 0
                for g in range(len(rr)):
                    done[g] = not (rr[g] > target[g] and math.isfinite(rr[g]))
                    active += not done[g]
                if steps == max_steps or active == 0:
                    return steps
                _rest(done, batch, idle, resting)
            potentials(p, transposed, s, C[:0], before, batch, idle, t)
            if in_c:
                call_edges(address, y, t, ptr, head, weight, flux)
            elif linear:
                _linear_jvp(y, t, t, ptr, head, weight, resting, flux, BLOCK)
            else:
                _flux_jvp(y, t, t, ptr, head, weight, resting, flux, BLOCK)
            gather(flux, s, after, panels, mask, p, batch, idle, ap)
            if once:
                _turn(x, ap, factor, batch, idle)
                return 0
            _dots(p, ap, batch, idle, new)
            for g in range(len(rr)):
                factor[g] = rr[g] / new[g] if new[g] > 0 else 0.0
            _descend_by(x, p, r, ap, factor, batch, idle)
            _dots(r, r, batch, idle, new)
            for g in range(len(rr)):
                if not done[g]:
                    factor[g], rr[g] = new[g] / rr[g], new[g]
            steps += 1

    return _compile(kernel, f"conjugate_gradients_{in_c}_{linear}")
