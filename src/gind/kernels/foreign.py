"""Calls from numba code to the edge loops in C, by address."""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

__all__ = ["call_edges"]


@intrinsic
def call_edges(typing_context, address, y, t, ptr, head, weight, out):
    """The function of `native/loops.h` at this address, with u = t and all channels; an empty `weight` is null."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        size, byte = ir.IntType(64), ir.IntType(8).as_pointer()
        arrays = [context.make_array(kinds[k])(context, builder, arguments[k]) for k in range(1, 7)]
        pointers = [builder.bitcast(array.data, byte) for array in arrays]
        weighted = builder.icmp_signed(">", arrays[4].nitems, size(0))
        pointers[4] = builder.select(weighted, pointers[4], ir.Constant(byte, None))
        nodes, channels = builder.extract_value(arrays[0].shape, 0), builder.extract_value(arrays[0].shape, 1)
        kind = ir.FunctionType(ir.VoidType(), [byte] * 7 + [size] * 4)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        where = [pointers[k] for k in (0, 1, 1, 2, 3, 4, 5)]
        builder.call(function, [*where, nodes, channels, size(0), channels])
        return context.get_dummy_value()

    return types.void(types.int64, y, t, ptr, head, weight, out), generate
