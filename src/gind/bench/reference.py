"""The layer on the kernels that store edge tensors: plain PyTorch, the definition of every operator."""

import contextlib
from collections.abc import Iterator

from gind.kernels import op
from gind.kernels.onecall import switched_off

__all__ = ["reference_kernels"]

_OPERATORS = (op._flux, op._flux_jvp, op._flux_secant, op._flux_curve, op._flux_vjp)


@contextlib.contextmanager
def reference_kernels() -> Iterator[None]:
    """Within, every operator stores tensors of edges x channels."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(switched_off())  # the general loops, which call the operators
        for operator in _OPERATORS:
            stack.enter_context(operator.set_kernel_enabled("cpu", enabled=False))
        yield
