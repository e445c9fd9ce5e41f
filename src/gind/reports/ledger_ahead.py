"""Who is above GIND, by how much and how surely; and where features alone are."""

import math

from gind.experiments.protocol import LAST
from gind.reports.ledger import CERTIFIED, PUBLISHED, Entry, Item, Place
from gind.reports.ledger_spread import split_by_split
from gind.reports.ledger_words import SIDES
from gind.reports.paper import PaperTable

__all__ = ["ahead"]

_HOW = """\
In parentheses the points that it is above, split by split, ± their standard error; seeds of a split count as one."""


def ahead(item: Item, table: PaperTable) -> list[str]:
    """By dataset, of what has all its runs: who is above GIND, and who of GIND is below the floor."""
    first: dict[tuple[str, str], Entry] = {}  # a dataset may have several rows
    for entry in item.entries(table):
        if entry.protocol != LAST:  # the runs of another line
            first.setdefault((entry.dataset, entry.protocol), entry)
    lines, below = [], []
    for name, model in reversed(list(zip(SIDES, (PUBLISHED, CERTIFIED), strict=True))):
        found = []
        for (dataset, protocol), entry in first.items():
            own = entry.published if model == PUBLISHED else entry.certified
            there = [place for place in item.places if (place.dataset, place.protocol) == (dataset, protocol)]
            found += _above(dataset, own, [place for place in there if not place.ours])
        lines += [f"Other systems above the {name} GIND, of those with all runs:", "", *found, ""] if found else []
    if lines:
        lines += [_HOW, ""]
    for (dataset, _), entry in first.items():
        floor = item.floor(entry)
        ours = zip(SIDES, (entry.published, entry.certified), strict=True)
        least = 0.0 if floor is None else floor.mean or 0.0
        lower = [f"{name} {_mean(place):.2f}" for name, place in ours if _mean(place) < least]
        below += [f"- {dataset}: {', '.join(lower)} (`{floor.system}` {least:.2f})"] if lower and floor else []
    return lines + (["Below what features alone give:", "", *below, ""] if below else [])


def _above(dataset: str, own: Place | None, others: list[Place]) -> list[str]:
    higher = sorted((place for place in others if _mean(own) < (place.mean or 0.0)), key=_mean, reverse=True)
    named = [f"{place.system} {place.mean:.2f} ({split_by_split(own, place)})" for place in higher]
    return [f"- {dataset}: {', '.join(named)}"] if named else []


def _mean(place: Place | None) -> float:
    """Infinite if runs are missing: then nothing is above."""
    return math.inf if place is None or place.mean is None else place.mean
