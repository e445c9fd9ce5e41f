"""Benchmarks that users can run: time, memory, and what the machine could do, with every contender in turn."""

from gind.bench.case import BenchError, Case, CaseRequest
from gind.bench.interleave import Contender, differences, interleave
from gind.bench.memory import peak_bytes
from gind.bench.page import embed, tables
from gind.bench.reference import reference_kernels
from gind.bench.run import Options, bench
from gind.bench.schema import Report, read_report
from gind.bench.shapes import SHAPES, Shape, make_graph
from gind.bench.shapes import USUAL as USUAL_SHAPES

__all__ = [
    "SHAPES",
    "USUAL_SHAPES",
    "BenchError",
    "Case",
    "CaseRequest",
    "Contender",
    "Options",
    "Report",
    "Shape",
    "bench",
    "differences",
    "embed",
    "interleave",
    "make_graph",
    "peak_bytes",
    "read_report",
    "reference_kernels",
    "tables",
]
