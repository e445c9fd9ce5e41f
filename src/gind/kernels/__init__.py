"""Fused edge kernels: raw tensors in, raw tensors out; nothing of size edges x channels is stored."""

from gind.kernels.op import ACTIVATIONS, Activation, flux, flux_jvp, flux_secant, has_numba, implementation, why_not

__all__ = ["ACTIVATIONS", "Activation", "flux", "flux_jvp", "flux_secant", "has_numba", "implementation", "why_not"]
