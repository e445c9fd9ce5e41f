"""The map of `diffusion` part by part, compiled by numba: the pieces of whole solves."""

from numba import njit

from gind.kernels.scalar import FASTMATH
from gind.kernels.tile import ROWS, half_tile, one_row, whole_tile

__all__ = ["BLOCK", "STRIP", "gather", "lerp", "multiply", "potentials"]

BLOCK = 128  # channels, as in `cpu`
STRIP = 2 * ROWS
"""rows of a product at a time: each panel is used twice while it is near, and few rows wait for others to rest"""


@njit(inline="always")
def lerp(a, b, weight, rest):
    """As torch has it: a + weight (b - a), from the nearer end; `rest` is 1 - weight."""
    return a + weight * (b - a) if weight < rest else b - rest * (b - a)


@njit(fastmath=FASTMATH, error_model="numpy")
def resting(idle, first, last):
    for i in range(first, min(last, len(idle))):
        if not idle[i]:
            return False
    return len(idle) > 0


@njit(fastmath=FASTMATH, error_model="numpy")
def multiply(a, first, last, panels, out):
    """out = a @ B in these rows, B cut into panels."""
    for j in range(len(panels)):
        i = first
        while last - i >= ROWS:
            whole_tile(a, i, panels, j, out)
            i += ROWS
        if last - i >= ROWS // 2:
            half_tile(a, i, panels, j, out)
            i += ROWS // 2
        while i < last:
            one_row(a, i, panels, j, out)
            i += 1


@njit(fastmath=FASTMATH, error_model="numpy")
def potentials(z, transposed, s, C, gain, batch, idle, y):
    """y = g ⊙ (s ⊙ zKᵀ + C), without C if it is empty; a node with several ends has a row of y for each."""
    nodes, injected, gained = len(z), len(C) > 0, len(gain) > 0
    ends = len(s) // max(nodes, 1)
    wide = y.reshape(nodes, ends * y.shape[1])
    for first in range(0, nodes, STRIP):
        last = min(nodes, first + STRIP)
        if resting(idle, first, last):
            continue
        multiply(z, first, last, transposed, wide)
        for i in range(first * ends, last * ends):
            row = y[i]
            if injected:
                given = C[i]
                for c in range(len(row)):
                    row[c] = given[c] + row[c] * s[i]
            else:
                for c in range(len(row)):
                    row[c] *= s[i]
            if gained:
                own = gain[batch[i // ends] if len(batch) else 0]
                for c in range(len(row)):
                    row[c] *= own[c]


@njit(fastmath=FASTMATH, error_model="numpy")
def gather(flux, s, gain, panels, mask, u, batch, idle, out):
    """out = -m ⊙ ((s ⊙ ω ⊙ flux) K), or u + m ⊙ (...) if u is given; the flux is overwritten."""
    nodes, masked, gained, added = len(out), len(mask) > 0, len(gain) > 0, len(u) > 0
    ends = len(s) // max(nodes, 1)
    wide = flux.reshape(nodes, ends * flux.shape[1])
    for first in range(0, nodes, STRIP):
        last = min(nodes, first + STRIP)
        if resting(idle, first, last):
            continue
        for i in range(first * ends, last * ends):
            row, factor = flux[i], s[i] if added else -s[i]
            if gained:
                own = gain[batch[i // ends] if len(batch) else 0]
                for c in range(len(row)):
                    row[c] *= own[c]
            for c in range(len(row)):
                row[c] *= factor
        multiply(wide, first, last, panels, out)
        for i in range(first, last):
            row = out[i]
            if masked:
                kept = mask[i]
                for c in range(len(row)):
                    row[c] *= kept[c]
            if added:
                own = u[i]
                for c in range(len(row)):
                    row[c] += own[c]
