"""Calls from numba code to the edge loops in C, by address."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

__all__ = ["call_edges", "call_moments"]

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


@intrinsic
def call_moments(typing_context, address, y, a, b, c, d, e, f, graphs):
    """moments, spread and moments_vjp: y and six arrays in the order of their C functions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = _unpack(context, builder, signature, arguments)
        sizes = [*(builder.extract_value(arrays[0].shape, k) for k in (0, 1)), arguments[-1]]
        _call(builder, arguments[0], arrays, sizes)
        return context.get_dummy_value()

    return types.void(types.int64, y, a, b, c, d, e, f, types.int64), generate
