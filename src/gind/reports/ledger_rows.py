"""The table of an item that the paper does not have: rows of GIND beside each other, and what features alone give."""

from collections import Counter

from gind.reports.ledger import FLOOR, Item
from gind.reports.ledger_spread import difference
from gind.reports.ledger_tables import value
from gind.reports.ledger_words import side
from gind.text import table

__all__ = ["rows_table"]

_HOW = """\
± of a difference is the standard error of its mean over the splits, which share nodes, so it is too small."""


def rows_table(item: Item) -> list[str]:
    """A line for each dataset, a column for each row of the sheet, then each minus the first."""
    once = max(Counter((place.dataset, place.printed) for place in item.ours).values()) == 1
    named = [(place.printed if once else side(place), place) for place in item.ours]
    names = list(dict.fromkeys(name for name, _ in named))
    lines = []
    for dataset in dict.fromkeys(place.dataset for place in item.ours):
        there = {name: place for name, place in named if place.dataset == dataset}
        floor = next((place for place in item.places if (place.dataset, place.system) == (dataset, FLOOR)), None)
        apart = [difference(there.get(names[0]), there.get(name)) for name in names[1:]]
        lines.append([dataset, *(value(there.get(name)) for name in names), *apart, value(floor)])
    titles = ["dataset", *names, *(f"{name} - {names[0]}" for name in names[1:]), "no graph"]
    return [*table(titles, lines), "", _HOW, ""]
