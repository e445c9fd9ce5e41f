"""The loops of the sparse input layer, compiled by numba; compiled code is kept on disk as in `gind.kernels.loops`."""

import functools

import numpy as np
from numba import prange

from gind.kernels.loops import Kernel, compile_kernel

__all__ = ["multiply", "multiply_transposed", "thin"]

_LINE = 16  # numbers


@functools.cache
def thin() -> Kernel:
    """Copy the entries whose bits are not below the threshold, scaled, row by row."""

    def kernel(crow, col, values, bits, threshold, scale, new_crow, new_col, new_values):
        kept = 0
        for i in range(len(crow) - 1):
            new_crow[i] = kept
            for e in range(crow[i], crow[i + 1]):
                # written first and counted after: a branch on random bits would be mispredicted half of the time
                new_col[kept] = col[e]
                new_values[kept] = values[e] * scale
                kept += bits[e] >= threshold
        new_crow[len(crow) - 1] = kept

    return compile_kernel(kernel, False, "thin")


@functools.cache
def multiply(parallel: bool) -> Kernel:
    """out = X D: a row of the result gathers the rows of D that its entries name. Threads share out the rows."""

    def kernel(crow, col, values, dense, out, block):
        rows, channels = out.shape
        for i in prange(rows):
            here = out[i]
            here[:] = 0
            for e in range(crow[i], crow[i + 1]):
                value, there = values[e], dense[col[e]]
                for c in range(channels):
                    here[c] += value * there[c]

    return compile_kernel(kernel, parallel, "multiply")


@functools.cache
def multiply_transposed(flipped: bool, parallel: bool) -> Kernel:
    """out = Xᵀ D, or its transpose: a row of D is added to the rows of the product that its entries name.

    Threads share out the channels. A block of channels is summed in memory of its own: in `out` the lines of two
    threads would lie side by side.
    """

    def kernel(crow, col, values, dense, out, block):
        rows, channels = dense.shape
        columns = out.shape[1] if flipped else len(out)
        for b in prange((channels + block - 1) // block):
            first = b * block
            last = min(channels, first + block)
            width = last - first
            part = np.zeros((columns, width), out.dtype)
            for i in range(rows):
                here = dense[i, first:last]
                for e in range(crow[i], crow[i + 1]):
                    value, there = values[e], part[col[e]]
                    for c in range(width):
                        there[c] += value * here[c]
            if flipped:
                for start in range(0, columns, _LINE):  # whole lines of `out` from rows that stay near
                    end = min(columns, start + _LINE)
                    for c in range(width):
                        for k in range(start, end):
                            out[first + c, k] = part[k, c]
            else:
                out[:, first:last] = part

    return compile_kernel(kernel, parallel, f"multiply_transposed_{flipped}")
