"""A cache hint for the numba kernels: the rows of the next edges' heads are known long before they are needed."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from gind.kernels.untyped import intrinsic

__all__ = ["prefetch"]


@intrinsic
def prefetch(typing_context, array, row, column):
    """Ask for the cache line of array[row, column]; no effect on any result."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        index = list(arguments[1:])
        item = cgutils.get_item_pointer(context, builder, kind, view, index, wraparound=False)
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        name = "llvm.prefetch.p0i8"
        hint = cgutils.get_or_insert_function(builder.module, shape, name)
        # for reading, to be kept in all caches, data
        builder.call(hint, [builder.bitcast(item, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), generate
