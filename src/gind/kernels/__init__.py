"""Fused edge kernels: raw tensors in, raw tensors out; nothing of size edges x channels is stored."""

from gind.kernels.op import ACTIVATIONS, flux, flux_jvp, flux_secant, implementation

__all__ = ["ACTIVATIONS", "flux", "flux_jvp", "flux_secant", "implementation"]
