"""The fused operators in C: same loops as `gind.kernels.loops`, about twice as fast."""
