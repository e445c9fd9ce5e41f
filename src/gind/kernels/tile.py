"""A small matrix product for the numba kernels: some rows times a narrow panel, held in registers.

A call of a library's product costs more than a small product itself, its threads cannot be relied on, and its
summation may depend on the number of rows. Here every entry of a row is one chain of fused multiply-adds, however wide
the vectors of the machine are.
"""

from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features as _features
from numba.core import cgutils, types

from gind.kernels.untyped import config, intrinsic

__all__ = ["PANEL", "ROWS", "WIDE", "half_tile", "one_row", "whole_tile"]

ROWS = 6
PANEL = 64
"""bytes in a row of a panel, and what channels are padded to"""
_VECTOR = 64 if config.CPU_NAME is None and config.ENABLE_AVX and _features().get("avx512f", False) else 32
WIDE = 2 * _VECTOR
"""bytes in a row of the widest panel: two vectors, so six rows have twelve sums, which do not wait for each other"""


def _generate(context: Any, builder: Any, signature: Any, arguments: Any, rows: int) -> Any:
    """out[i : i + rows, panel j] = a[i : i + rows] @ panels[j]; all arrays contiguous, panels (count, k, width).

    Panels have rows of PANEL bytes, or of WIDE.
    """
    kinds = signature.args
    number, bits = context.get_value_type(kinds[0].dtype), kinds[0].dtype.bitwidth
    a, panels, out = (
        context.make_array(kinds[position])(context, builder, arguments[position]) for position in (0, 2, 4)
    )
    place = (a, arguments[1], panels, arguments[3], out)
    if WIDE == PANEL:
        _tile(builder, number, bits, place, rows, PANEL)
        return context.get_dummy_value()
    width = cgutils.unpack_tuple(builder, panels.shape, 3)[2]
    with builder.if_else(builder.icmp_signed("==", width, width.type(WIDE * 8 // bits))) as (wide, narrow):
        with wide:
            _tile(builder, number, bits, place, rows, WIDE)
        with narrow:
            _tile(builder, number, bits, place, rows, PANEL)
    return context.get_dummy_value()


def _tile(builder: Any, number: Any, bits: int, place: tuple[Any, ...], rows: int, panel_bytes: int) -> None:
    a, i, panels, j, out = place
    vectors, lanes = panel_bytes // _VECTOR, _VECTOR * 8 // bits
    vector, index = ir.VectorType(number, lanes), ir.IntType(32)
    length = cgutils.unpack_tuple(builder, a.shape, 2)[1]
    width = cgutils.unpack_tuple(builder, out.shape, 2)[1]
    size = length.type
    shape = ir.FunctionType(vector, [vector] * 3)
    multiply_add = cgutils.get_or_insert_function(builder.module, shape, f"llvm.fmuladd.v{lanes}f{bits}")

    def at(data: Any, *offsets: Any) -> Any:
        for offset in offsets:
            data = builder.gep(data, [offset])
        return data

    def as_vector(pointer: Any) -> Any:
        return builder.bitcast(pointer, vector.as_pointer())

    numbers = [builder.add(i, size(r)) for r in range(rows)]
    lines = [at(a.data, builder.mul(r, length)) for r in numbers]
    panel = at(panels.data, builder.mul(j, builder.mul(length, size(vectors * lanes))))
    zero = ir.Constant(vector, None)
    sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(rows)]
    with cgutils.for_range(builder, length) as loop:
        start = at(panel, builder.mul(loop.index, size(vectors * lanes)))
        parts = [builder.load(as_vector(at(start, size(v * lanes))), align=bits // 8) for v in range(vectors)]
        for line, line_sums in zip(lines, sums, strict=True):
            factor = builder.load(at(line, loop.index))
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, index(0))
            everywhere = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(index, lanes), None))
            for part, total in zip(parts, line_sums, strict=True):
                builder.store(builder.call(multiply_add, [everywhere, part, builder.load(total)]), total)
    for r, line_sums in zip(numbers, sums, strict=True):
        target = at(out.data, builder.mul(r, width), builder.mul(j, size(vectors * lanes)))
        for v, total in enumerate(line_sums):
            builder.store(builder.load(total), as_vector(at(target, size(v * lanes))), align=bits // 8)


@intrinsic
def whole_tile(typing_context, a, i, panels, j, out):
    """Rows i ... i + ROWS - 1 of a times panel j."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _generate(context, builder, signature, arguments, ROWS)

    return types.void(a, types.intp, panels, types.intp, out), generate


@intrinsic
def half_tile(typing_context, a, i, panels, j, out):
    """Half as many rows: a product of few rows waits for each of its sums."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _generate(context, builder, signature, arguments, ROWS // 2)

    return types.void(a, types.intp, panels, types.intp, out), generate


@intrinsic
def one_row(typing_context, a, i, panels, j, out):
    """Row i of a times panel j."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _generate(context, builder, signature, arguments, 1)

    return types.void(a, types.intp, panels, types.intp, out), generate
