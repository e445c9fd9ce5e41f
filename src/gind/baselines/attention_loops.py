"""The loops of attention, compiled by numba; compiled code is kept on disk as in `gind.kernels.loops`."""

import functools

from numba import prange

from gind.kernels.loops import Kernel, compile_kernel

__all__ = ["attend", "attend_backward"]


@functools.cache
def attend(parallel: bool) -> Kernel:
    """out_i = Σ_e α_e x_source(e), head by head: a row of the result gathers what its edges bring."""

    def kernel(crow, source, alpha, x, out, block):
        heads, channels = x.shape[1:]
        for i in prange(len(out)):
            here = out[i]
            here[:] = 0
            for e in range(crow[i], crow[i + 1]):
                there = x[source[e]]
                for k in range(heads):
                    value = alpha[e, k]
                    for c in range(channels):
                        here[k, c] += value * there[k, c]

    return compile_kernel(kernel, parallel, "attend")


@functools.cache
def attend_backward(parallel: bool) -> Kernel:
    """Where g is the gradient of `out`: that of α_e is ⟨g_i, x_source(e)⟩, that of x_source(e) collects α_e g_i.

    Threads share out the heads, in blocks of some.
    """

    def kernel(crow, source, alpha, x, grad, grad_alpha, grad_x, block):
        heads, channels = x.shape[1:]
        some = max(1, block // max(channels, 1))
        for b in prange((heads + some - 1) // some):
            first = b * some
            last = min(heads, first + some)
            grad_x[:, first:last] = 0
            for i in range(len(grad)):
                here = grad[i]
                for e in range(crow[i], crow[i + 1]):
                    there, collected = x[source[e]], grad_x[source[e]]
                    for k in range(first, last):
                        value = alpha[e, k]
                        total = x.dtype.type(0)
                        for c in range(channels):  # a loop of its own: beside a store it would not be vectorized
                            total += here[k, c] * there[k, c]
                        for c in range(channels):
                            collected[k, c] += value * here[k, c]
                        grad_alpha[e, k] = total

    return compile_kernel(kernel, parallel, "attend_backward", reorder=True)
