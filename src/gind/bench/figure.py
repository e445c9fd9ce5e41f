"""The curves of a report as a figure."""

import math
from pathlib import Path

from matplotlib.figure import Figure

from gind.bench.schema import Curve, Report

__all__ = ["scaling_figure", "write_figure"]


def scaling_figure(report: Report) -> Figure:
    """A panel for each size: measured points and the fitted power law, both axes logarithmic."""
    curves = report["scaling"]
    figure = Figure(figsize=(3.4 * len(curves), 3.2), layout="constrained")
    axes = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    for axis, curve in zip(axes, curves, strict=True):
        sizes, seconds = _coordinates(curve)
        axis.loglog(sizes, [1e3 * time for time in seconds], "o", color="tab:blue")
        axis.loglog(sizes, [1e3 * time for time in _fitted(curve)], "--", color="tab:gray", linewidth=1)
        axis.set(xlabel=curve["variable"], title=f"slope {curve['slope']:.2f}")
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("one iteration, ms")
    return figure


def write_figure(report: Report, directory: Path) -> list[Path]:
    """scaling.png and scaling.svg."""
    directory.mkdir(parents=True, exist_ok=True)
    figure = scaling_figure(report)
    paths = [directory / "scaling.png", directory / "scaling.svg"]
    for path in paths:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return paths


def _coordinates(curve: Curve) -> tuple[list[int], list[float]]:
    sizes = [dict(point)[curve["variable"]] for point in curve["points"]]
    return [int(str(size)) for size in sizes], [point["seconds"] for point in curve["points"]]


def _fitted(curve: Curve) -> list[float]:
    """The power law through the middle of the points."""
    sizes, seconds = _coordinates(curve)
    x = [math.log(size) for size in sizes]
    middle, height = sum(x) / len(x), sum(map(math.log, seconds)) / len(seconds)
    return [math.exp(height + curve["slope"] * (u - middle)) for u in x]
