"""The figures of the ledger, from its rows only."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gind.experiments.protocol import CHOICES
from gind.reports.collect import Row
from gind.reports.curves import CURVES, Curve, levels, series
from gind.reports.ledger import CERTIFIED, PUBLISHED, Item, Place

__all__ = ["draw", "save_svg", "write_figures"]

COLORS: Mapping[str, str] = MappingProxyType({PUBLISHED: "tab:orange", CERTIFIED: "tab:blue"})
NAMES: Mapping[str, str] = MappingProxyType({PUBLISHED: "GIND, published", CERTIFIED: "GIND, certified"})
_OTHERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "gcn": ("tab:gray", "s"),
        "gat": ("tab:brown", "D"),
        "sgc": ("tab:olive", "^"),
        "appnp": ("tab:green", "v"),
        "gcnii": ("tab:pink", "P"),
        "ignn": ("tab:purple", "X"),
        "eignn": ("tab:red", "*"),
    }
)
"""color and marker of a system, the same in all figures"""
_ANOTHER = ("tab:cyan", "h")
_PAPER: Mapping[str, Any] = MappingProxyType({"color": "tab:gray", "lw": 9, "alpha": 0.35, "zorder": 1})
_FLOOR: Mapping[str, Any] = MappingProxyType({"color": "black", "ls": ":", "lw": 1.2, "zorder": 1})


def draw(item: Item) -> Figure | None:
    """The figure of an item; None if it has none, or no run yet."""
    if item.name == "activation":
        return _activation()
    there = [place for place in item.places if place.row is not None]
    if item.name in CURVES:
        return _curve(item, CURVES[item.name]) if any(place.number is not None for place in there) else None
    dots = any(place.model in COLORS for place in there) and item.tables and len(item.tables[0].datasets) > 1
    return _dots(item) if dots else None


def write_figures(items: Sequence[Item], directory: Path) -> dict[str, Path]:
    """NAME.png and NAME.svg of every item that has a figure; the images by item. What is old goes."""
    directory.mkdir(parents=True, exist_ok=True)
    written = {}
    for item in items:
        figure = draw(item)
        path = directory / f"{item.name}.png"
        if figure is None:
            path.unlink(missing_ok=True)
            path.with_suffix(".svg").unlink(missing_ok=True)
            continue
        figure.savefig(path, dpi=150)
        save_svg(figure, path.with_suffix(".svg"), item.name)
        written[item.name] = path
    return written


def save_svg(figure: Figure, file: Any, salt: str) -> None:
    """The same figure gives the same bytes, and names that no other figure on a page has."""
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata={"Date": None})


def _activation() -> Figure:
    """σ(x) = x and σ(x) = tanh x."""
    figure = Figure(figsize=(4.6, 3.4), layout="constrained")
    axis = figure.subplots()
    x = np.linspace(-3, 3, 301)
    # no colors of profiles: both functions run in both
    axis.plot(x, x, color="tab:gray", label="σ(x) = x")
    axis.plot(x, np.tanh(x), color="tab:green", label="σ(x) = tanh x")
    axis.set(xlabel="difference x between two nodes", ylabel="flux σ(x)", xlim=(-3, 3), ylim=(-3, 3))
    axis.set_aspect("equal")
    axis.legend(frameon=False)
    axis.set_title("Two activation functions")
    _grid(axis)
    return figure


def _dots(item: Item) -> Figure:
    """Every run as a dot: the paper's mean and deviation as a bar, both profiles beside it, and the floor as a line.

    There is a panel for each row, and for each protocol.
    """
    table = item.tables[0]
    entries = item.entries(table)
    panels = list(dict.fromkeys((entry.printed, entry.protocol) for entry in entries))
    rows, protocols = ({panel[part] for panel in panels} for part in (0, 1))
    datasets = list(dict.fromkeys(entry.dataset for entry in entries))
    width = max(7.5, 1.1 * len(datasets) + 1.4)
    height = 4.2 if len(panels) == 1 else 1.2 + 1.9 * len(panels)
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(item.title)
    axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        shown = {entry.dataset: entry for entry in entries if (entry.printed, entry.protocol) == panel}
        for dataset, entry in shown.items():
            number = datasets.index(dataset)
            if entry.paper is not None:
                center, spread = entry.paper.mean, entry.paper.std or 0.0
                axis.errorbar(number - 0.25, center, spread, fmt="_", color="tab:gray", ms=14, mew=2, lw=5, alpha=0.6)
            for offset, place in ((0.0, entry.published), (0.25, entry.certified)):
                if place is not None:
                    _runs(axis, number + offset, place)
            floor = item.floor(entry)
            if floor is not None and floor.mean is not None:
                axis.plot([number - 0.4, number + 0.4], [floor.mean] * 2, **_FLOOR)
        axis.set_ylabel(f"test {_metric(item)}, %")
        names = [panel[0]] * (len(rows) > 1) + [CHOICES[panel[1]]] * (protocols != {"honest"})
        if names:
            axis.set_title(", ".join(names), loc="left", fontsize=10)
        axis.margins(y=0.08)
        _grid(axis, "y")
    axes[-1].set_xticks(range(len(datasets)), [name.replace("-", "\n", 1) for name in datasets])
    axes[-1].set_xlim(-0.6, len(datasets) - 0.4)
    axes[-1].tick_params(axis="x", length=0)
    handles = [
        axes[0].errorbar(
            [],
            [],
            [],
            fmt="_",
            color="tab:gray",
            ms=12,
            mew=2,
            lw=5,
            alpha=0.6,
            label="paper, mean, ± std where it has one",
        ),
        *(axes[0].plot([], [], "o", color=COLORS[m], ms=5, label=f"{NAMES[m]}: a run, — mean")[0] for m in COLORS),
    ]
    if any(floor is not None and floor.mean is not None for floor in map(item.floor, entries)):
        handles += axes[0].plot([], [], label="features alone, mean", **_FLOOR)
    figure.legend(handles=handles, loc="outside lower center", ncols=4 if width > 9 else 2, frameon=False, fontsize=9)
    return figure


def _metric(item: Item) -> str:
    metrics = {place.row.metric.replace("_", "-") for place in item.places if place.row is not None}
    return " or ".join(sorted(metrics))


def _runs(axis: Axes, x: float, place: Place) -> None:
    if place.row is None:
        where = axis.get_xaxis_transform()
        axis.text(x, 0.02, "missing", rotation=90, color="tab:gray", fontsize=7, ha="center", transform=where)
        return
    values = [single.test for single in place.row.singles]
    # runs of the same accuracy stand beside each other
    shift = np.linspace(-0.07, 0.07, len(values)) if len(values) > 1 else np.zeros(1)
    color = COLORS[place.model]
    axis.plot(x + shift, sorted(values), "o", color=color, ms=4, alpha=0.55, mew=0)
    if place.lacking:  # too few for a mean
        axis.annotate(place.lacking, (x, max(values)), (0, 5), textcoords="offset points", ha="center", fontsize=7)
    else:
        axis.plot([x - 0.1, x + 0.1], [place.row.test.mean] * 2, color=color, lw=2)


def _curve(item: Item, curve: Curve) -> Figure:
    """Accuracy, and time or Dirichlet energy, against what varies."""
    panels: list[tuple[str, Callable[[Row], float | None]]] = [
        ("test accuracy, %: mean, ± std", lambda row: row.test.mean)
    ]
    if curve.seconds:
        panels.append(("seconds per epoch", lambda row: row.seconds_per_epoch))
    if curve.energy:
        panels.append(("Dirichlet energy of the predictions", lambda row: row.dirichlet))
    figure = Figure(figsize=(max(6.6, 4.6 * len(panels)), 4.2), layout="constrained")
    datasets = [name for name in dict.fromkeys(place.dataset for place in item.places) if name not in item.title]
    figure.suptitle(f"{item.title} ({', '.join(datasets)})" if datasets else item.title)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, measure) in zip(axes, panels, strict=True):
        for model, places in series(item).items():
            _line(axis, places, measure, _style(model), deviation=title == panels[0][0])
        for place in levels(item):
            level = None if place.row is None else measure(place.row)
            if level is not None:
                name = f"{NAMES.get(place.model, place.model)}, {curve.level or place.variant}"
                axis.axhline(level, ls="--", lw=1.3, color=_style(place.model)["color"], label=name)
        axis.set(xlabel=curve.axis, ylabel=title)
        if title != panels[0][0]:  # times and energies
            axis.set_ylim(bottom=0)
        if curve.paper is not None:
            numbers = [place.number or 0 for place in item.places if place.number is not None]
            until, level = curve.paper
            axis.plot([min(numbers), until], [level] * 2, label="GIND and EIGNN in the paper", **_PAPER)
        if title == panels[0][0]:
            axis.set_ylim(top=min(axis.get_ylim()[1], 101))
        _ticks(axis, item, curve)
        _grid(axis)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4), frameon=False, fontsize=9)
    return figure


def _line(
    axis: Axes,
    places: Sequence[Place],
    measure: Callable[[Row], float | None],
    style: Mapping[str, Any],
    *,
    deviation: bool,
) -> None:
    points = [(place.number, measure(place.row), place.row.test.std) for place in places if place.row is not None]
    there = [(x, y, std or 0.0) for x, y, std in points if x is not None and y is not None]
    if there:
        x, y, std = (np.array(column) for column in zip(*there, strict=True))
        axis.plot(x, y, **style)
        if deviation:
            axis.fill_between(x, y - std, np.minimum(y + std, 100), color=style["color"], alpha=0.12, lw=0)


def _style(model: str) -> dict[str, Any]:
    """GIND lies on top of others, whose larger markers show around its own."""
    ours = model in COLORS
    color, marker = (COLORS[model], "o") if ours else _OTHERS.get(model, _ANOTHER)
    return {"color": color, "label": NAMES.get(model, model), "zorder": 2 + ours, "marker": marker, "ms": 8 - 3 * ours}


def _ticks(axis: Axes, item: Item, curve: Curve) -> None:
    numbers = sorted({place.number for place in item.places if place.number is not None})
    if curve.logarithmic:
        axis.set_xscale("log")
        axis.minorticks_off()
        axis.set_xlim(numbers[0] / 1.15, numbers[-1] * 1.15)
    if len(numbers) <= 10:
        axis.set_xticks(numbers, [f"{number:g}" for number in numbers], minor=False)


def _grid(axis: Axes, which: Any = "both") -> None:
    axis.grid(True, axis=which, alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
