"""Calls from numba code to the edge loops in C, by address."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

from gind.kernels.untyped import intrinsic

__all__ = ["call_edges", "call_moments", "call_vjp"]

_SIZE, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


def _call(builder: Any, address: Any, arrays: Sequence[Any], sizes: Sequence[Any]) -> None:
    """A function of `native/loops.h` with these arrays, of which empty ones are null, and sizes; all channels."""
    pointers = []
    for array in arrays:
        there = builder.icmp_signed(">", array.nitems, _SIZE(0))
        pointers.append(builder.select(there, builder.bitcast(array.data, _BYTES), ir.Constant(_BYTES, None)))
    channels = sizes[1]
    kind = ir.FunctionType(ir.VoidType(), [_BYTES] * len(pointers) + [_SIZE] * (len(sizes) + 2))
    builder.call(builder.inttoptr(address, kind.as_pointer()), [*pointers, *sizes, _SIZE(0), channels])


def _unpack(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """The arrays after the address."""
    pairs = list(zip(signature.args, arguments, strict=True))[1:]
    return [context.make_array(kind)(context, builder, given) for kind, given in pairs if isinstance(kind, types.Array)]


@intrinsic
def call_edges(typing_context, address, y, t, ptr, head, weight, out):
    """flux and its kin, with u = t."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        y, t, *rest = _unpack(context, builder, signature, arguments)
        sizes = [builder.extract_value(y.shape, k) for k in (0, 1)]
        _call(builder, arguments[0], [y, t, t, *rest], sizes)
        return context.get_dummy_value()

    return types.void(types.int64, y, t, ptr, head, weight, out), generate


def _generate_by_graph(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """For functions of all arrays in the order given, whose last size is the number of graphs."""
    arrays = _unpack(context, builder, signature, arguments)
    sizes = [*(builder.extract_value(arrays[0].shape, k) for k in (0, 1)), arguments[-1]]
    _call(builder, arguments[0], arrays, sizes)
    return context.get_dummy_value()


@intrinsic
def call_moments(typing_context, address, y, ptr, head, weight, batch, out, sums, graphs):
    """moments, spread."""
    return types.void(types.int64, y, ptr, head, weight, batch, out, sums, types.int64), _generate_by_graph


@intrinsic
def call_vjp(typing_context, address, y, t, cotangent, ptr, head, weight, batch, out, graphs):
    """flux_vjp, spread_vjp."""
    signature = types.void(types.int64, y, t, cotangent, ptr, head, weight, batch, out, types.int64)
    return signature, _generate_by_graph
