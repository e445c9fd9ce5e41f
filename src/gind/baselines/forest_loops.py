"""The loops of elimination on forests, compiled by numba; compiled code is kept on disk as in `gind.kernels.loops`."""

import functools

from gind.kernels.loops import Kernel, compile_kernel

__all__ = ["eliminate", "sweep"]


@functools.cache
def eliminate() -> Kernel:
    """1 - c own, less what the nodes below leave of it, inverted; and what each carries up."""

    def kernel(parent, roots, own, link, c, gain, carry):
        nodes, channels = gain.shape
        for i in range(nodes):
            for k in range(channels):
                gain[i, k] = 1 - own[i] * c[k]
                carry[i, k] = 0
        for i in range(nodes - 1, roots - 1, -1):
            here, above, carried = gain[i], gain[parent[i]], carry[i]
            for k in range(channels):
                entry = link[i] * c[k]
                carried[k] = entry / here[k]
                above[k] -= entry * carried[k]
        for i in range(nodes):
            for k in range(channels):
                gain[i, k] = 1 / gain[i, k]

    return compile_kernel(kernel, False, "forest_eliminate")


@functools.cache
def sweep() -> Kernel:
    """Up and down again, in place: z holds a right side, and then the solution."""

    def kernel(parent, roots, gain, carry, z):
        nodes, channels = z.shape
        for i in range(nodes - 1, roots - 1, -1):
            here, above, carried = z[i], z[parent[i]], carry[i]
            for k in range(channels):
                above[k] += carried[k] * here[k]
        for i in range(nodes):
            for k in range(channels):
                z[i, k] *= gain[i, k]
        for i in range(roots, nodes):
            here, above, carried = z[i], z[parent[i]], carry[i]
            for k in range(channels):
                here[k] += carried[k] * above[k]

    return compile_kernel(kernel, False, "forest_sweep")
