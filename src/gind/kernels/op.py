"""The torch operators `flux`, `flux_jvp` and `flux_secant`, with moments and gradients, chosen by device.

The plain PyTorch reference is the default for every device. A faster implementation for a device is one file that
has the functions of `reference` and one entry in `_IMPLEMENTATIONS`; the first that can be loaded serves.
"""

import functools
import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from gind.kernels import reference

__all__ = ["ACTIVATIONS", "Activation", "flux", "flux_jvp", "flux_secant", "has_numba", "implementation", "why_not"]

Activation = Literal["tanh", "identity"]
ACTIVATIONS: tuple[str, ...] = get_args(Activation)
_IMPLEMENTATIONS = {"cpu": ("gind.kernels.compiled", "gind.kernels.cpu")}  # device type → modules, the fastest first


@torch.library.custom_op("gind::flux", mutates_args=())
def _flux(
    y: Tensor,
    tail: Tensor,
    head: Tensor,
    ptr: Tensor,
    weight: Tensor,
    batch: Tensor,
    num_graphs: int,
    activation: str,
    moments: bool,
    primitive: bool = True,
) -> tuple[Tensor, Tensor]:
    return reference.flux(y, (tail, head, weight), batch, num_graphs, activation, moments, primitive)


@torch.library.custom_op("gind::flux_jvp", mutates_args=())
def _flux_jvp(y: Tensor, t: Tensor, tail: Tensor, head: Tensor, ptr: Tensor, weight: Tensor, activation: str) -> Tensor:
    return reference.flux_jvp(y, t, (tail, head, weight), activation)


@torch.library.custom_op("gind::flux_secant", mutates_args=())
def _flux_secant(
    y: Tensor, t: Tensor, tail: Tensor, head: Tensor, ptr: Tensor, weight: Tensor, activation: str
) -> Tensor:
    return reference.flux_secant(y, t, (tail, head, weight), activation)


@torch.library.custom_op("gind::secant_curve", mutates_args=())
def _secant_curve(
    y: Tensor, t: Tensor, u: Tensor, tail: Tensor, head: Tensor, ptr: Tensor, weight: Tensor, activation: str
) -> Tensor:
    return reference.secant_curve(y, t, u, (tail, head, weight), activation)


@torch.library.custom_op("gind::flux_curve", mutates_args=())
def _flux_curve(
    y: Tensor, t: Tensor, u: Tensor, tail: Tensor, head: Tensor, ptr: Tensor, weight: Tensor, activation: str
) -> Tensor:
    return reference.flux_curve(y, t, u, (tail, head, weight), activation)


@torch.library.custom_op("gind::flux_vjp", mutates_args=())
def _flux_vjp(
    y: Tensor,
    t: Tensor,
    cotangent: Tensor,
    tail: Tensor,
    head: Tensor,
    ptr: Tensor,
    weight: Tensor,
    batch: Tensor,
    activation: str,
) -> Tensor:
    return reference.flux_vjp(y, t, cotangent, (tail, head, weight), batch, activation)


def flux(
    y: Tensor,
    tail: Tensor,
    head: Tensor,
    ptr: Tensor,
    weight: Tensor,
    batch: Tensor,
    num_graphs: int = 1,
    activation: str = "tanh",
    moments: bool = False,
    primitive: bool = True,
) -> tuple[Tensor, Tensor]:
    """flux(y)_i = Σ_j w_ij σ(y_i - y_j), differentiable in y.

    `y` is n x h. Edges are sorted by `tail`, `ptr` (n + 1) says where each tail's edges begin. `weight` is empty if all
    weights are 1, `batch` (the graph of each node) is empty if there is one graph. With `moments`, the second result
    holds Σwσ, Σwσ² and Σwσ̃ over the edges of each graph (3 x graphs x h, float64), else it is empty. Without
    `primitive` the last, whose logarithms cost as much as all the rest, is left out: 0.
    """
    result: tuple[Tensor, Tensor] = _flux(
        y.contiguous(), tail, head, ptr, weight, batch, num_graphs, activation, moments, primitive
    )
    return result


def flux_jvp(
    y: Tensor, t: Tensor, tail: Tensor, head: Tensor, ptr: Tensor, weight: Tensor, activation: str = "tanh"
) -> Tensor:
    """flux_jvp(y, t)_i = Σ_j w_ij σ'(y_i - y_j) (t_i - t_j), differentiable in y and t."""
    result: Tensor = _flux_jvp(y.contiguous(), t.contiguous(), tail, head, ptr, weight, activation)
    return result


def flux_secant(
    y: Tensor, t: Tensor, tail: Tensor, head: Tensor, ptr: Tensor, weight: Tensor, activation: str = "tanh"
) -> Tensor:
    """flux_secant(y, t)_i = Σ_j w_ij σ(v)/v (t_i - t_j) with v = y_i - y_j, differentiable in y and t."""
    result: Tensor = _flux_secant(y.contiguous(), t.contiguous(), tail, head, ptr, weight, activation)
    return result


# Shapes of the results, for tracing without data.


@_flux.register_fake
def _(y, tail, head, ptr, weight, batch, num_graphs, activation, moments, primitive=True):
    shape = (3, num_graphs, y.shape[1]) if moments else (0,)
    return torch.empty_like(y), y.new_empty(shape, dtype=torch.float64)


@_flux_jvp.register_fake
@_flux_secant.register_fake
def _(y, t, tail, head, ptr, weight, activation):
    return torch.empty_like(y)


@_flux_curve.register_fake
@_secant_curve.register_fake
def _(y, t, u, tail, head, ptr, weight, activation):
    return torch.empty_like(y)


@_flux_vjp.register_fake
def _(y, t, cotangent, tail, head, ptr, weight, batch, activation):
    return torch.empty_like(y)


# Gradients.


def _save_flux(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    y, tail, head, ptr, weight, batch, _, ctx.activation, ctx.moments, ctx.primitive = inputs
    ctx.save_for_backward(y, tail, head, ptr, weight, batch)


def _flux_backward(ctx: Any, grad: Tensor, grad_moments: Tensor) -> tuple[Tensor | None, ...]:
    y, tail, head, ptr, weight, batch = ctx.saved_tensors
    if ctx.moments:
        asked = grad_moments if ctx.primitive else grad_moments[:2]
        grad_y = _flux_vjp(y, grad.contiguous(), asked, tail, head, ptr, weight, batch, ctx.activation)
    else:
        grad_y = flux_jvp(y, grad, tail, head, ptr, weight, ctx.activation)
    return grad_y, None, None, None, None, None, None, None, None, None


def _save_product(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.activation = inputs
    ctx.save_for_backward(*tensors)


def _product_backward(product: Any, curve: Any) -> Callable[..., tuple[Tensor | None, ...]]:
    """For a product that is symmetric in t: its transpose is itself, its gradient in y is `curve`."""

    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, t, *edges = ctx.saved_tensors
        grad = grad.contiguous()
        grad_y = curve(y, t, grad, *edges, ctx.activation) if ctx.needs_input_grad[0] else None
        grad_t = product(y, grad, *edges, ctx.activation) if ctx.needs_input_grad[1] else None
        return grad_y, grad_t, None, None, None, None, None

    return backward


_flux.register_autograd(_flux_backward, setup_context=_save_flux)
_flux_jvp.register_autograd(_product_backward(_flux_jvp, _flux_curve), setup_context=_save_product)
_flux_secant.register_autograd(_product_backward(_flux_secant, _secant_curve), setup_context=_save_product)


# Implementations by device.

_serving: dict[str, str] = {}  # device type → module
_why_not: dict[str, dict[str, str]] = {}  # device type → module → why it could not be loaded


def implementation(device: str = "cpu") -> str:
    """Which implementation serves a device type: its module, or "reference" and why."""
    if device in _serving:
        return _serving[device]
    reasons = "; ".join(_why_not.get(device, {}).values())
    return f"reference ({reasons or 'no fused kernel for this device'})"


def why_not(device: str = "cpu") -> dict[str, str]:
    """The implementations that were tried for a device type and could not be loaded, with the reasons."""
    return dict(_why_not.get(device, {}))


@functools.cache
def has_numba() -> bool:
    """Whether loops compiled by numba can be used: it is there, and has a directory for what it compiles."""
    try:
        importlib.import_module("gind.kernels.cpu")
    except (ImportError, RuntimeError):
        return False
    return True


def _register(device: str, kernels: ModuleType) -> None:
    @_flux.register_kernel(device)
    def _(y, tail, head, ptr, weight, batch, num_graphs, activation, moments, primitive=True):
        return kernels.flux(y, (ptr, head, weight), batch, num_graphs, activation, moments, primitive)

    @_flux_jvp.register_kernel(device)
    def _(y, t, tail, head, ptr, weight, activation):
        return kernels.flux_jvp(y, t, (ptr, head, weight), activation)

    @_flux_secant.register_kernel(device)
    def _(y, t, tail, head, ptr, weight, activation):
        return kernels.flux_secant(y, t, (ptr, head, weight), activation)

    @_flux_curve.register_kernel(device)
    def _(y, t, u, tail, head, ptr, weight, activation):
        return kernels.flux_curve(y, t, u, (ptr, head, weight), activation)

    @_flux_vjp.register_kernel(device)
    def _(y, t, cotangent, tail, head, ptr, weight, batch, activation):
        return kernels.flux_vjp(y, t, cotangent, (ptr, head, weight), batch, activation)


def _load() -> None:
    for device, modules in _IMPLEMENTATIONS.items():
        for module in modules:
            try:
                kernels = importlib.import_module(module)
            except (ImportError, RuntimeError) as error:
                # a library, compiler or (numba: RuntimeError) directory for compiled code is absent
                _why_not.setdefault(device, {})[module] = f"{type(error).__name__}: {error}"
            else:
                _register(device, kernels)
                _serving[device] = module
                break
        else:
            reasons = "; ".join(_why_not[device].values())
            warnings.warn(
                f"gind runs its slow reference kernels on {device}: {reasons}. Install a C compiler or numba, and set "
                "GIND_CACHE or NUMBA_CACHE_DIR to a directory of your own.",
                RuntimeWarning,
                stacklevel=2,
            )


_load()
