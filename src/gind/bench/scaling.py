"""How one iteration grows with edges, nodes and channels, the other two sizes fixed and small."""

import dataclasses
import math
from collections.abc import Sequence

from gind.bench.interleave import Contender, interleave
from gind.bench.layer import make_iteration
from gind.bench.schema import Curve
from gind.bench.shapes import Shape, make_graph

__all__ = ["LARGE", "QUICK", "USUAL", "Range", "curve", "slope"]


@dataclasses.dataclass(frozen=True)
class Range:
    """One size that grows, from a shape that says the others."""

    variable: str
    """edges, nodes or channels"""
    shape: Shape
    sizes: tuple[int, ...]

    def shapes(self) -> list[Shape]:
        """The shapes of the curve."""
        return [self.shape._replace(**{self.variable: size}) for size in self.sizes]


def _ranges(edges: Sequence[int], nodes: Sequence[int], channels: Sequence[int]) -> tuple[Range, ...]:
    return (
        Range("edges", Shape(20_000, 0), tuple(edges)),
        Range("nodes", Shape(0, 10_000), tuple(nodes)),
        Range("channels", Shape(5_000, 50_000), tuple(channels)),
    )


USUAL = _ranges((100_000, 300_000, 1_000_000, 2_000_000), (10_000, 30_000, 100_000, 300_000), (16, 32, 64, 128, 256))
LARGE = _ranges(
    (100_000, 300_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000),
    (10_000, 30_000, 100_000, 300_000, 1_000_000),
    (16, 32, 64, 128, 256, 512),
)
QUICK = (
    Range("edges", Shape(200, 0, 16), (100, 1000)),
    Range("nodes", Shape(0, 100, 16), (100, 1000)),
    Range("channels", Shape(100, 400), (8, 32)),
)


def curve(span: Range, rounds: int) -> Curve:
    """Best times of one iteration, all sizes in turn, and the slope through them."""
    shapes = span.shapes()
    contenders = [Contender(str(shape), make_iteration(make_graph(shape), shape.channels)) for shape in shapes]
    best = interleave(contenders, rounds).best
    return {
        "variable": span.variable,
        "slope": slope(span.sizes, best),
        "points": [
            {"nodes": shape.nodes, "edges": shape.edges, "channels": shape.channels, "seconds": seconds}
            for shape, seconds in zip(shapes, best, strict=True)
        ],
    }


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """a of the least squares fit log seconds = a log size + b."""
    x, y = [math.log(size) for size in sizes], [math.log(time) for time in seconds]
    middle, height = sum(x) / len(x), sum(y) / len(y)
    above = sum((u - middle) * (v - height) for u, v in zip(x, y, strict=True))
    return above / sum((u - middle) ** 2 for u in x)
