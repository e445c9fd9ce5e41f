"""The ledger in one table: GIND on the datasets of the paper, by both profiles, and whether they hold what it says."""

from collections.abc import Iterator, Sequence

from gind.reports.ledger import Entry, Item
from gind.reports.ledger_tables import as_printed, points, value
from gind.text import are, plural, table

__all__ = ["summary"]


def summary(items: Sequence[Item]) -> list[str]:
    """Is `published` within one standard deviation of the paper, and is `certified` at or above it?"""
    rows, published, certified = [], [], []
    for entry in _entries(items):
        near, high = _near(entry, items), _high(entry)
        published.append(near)
        certified.append(high)
        sides = (
            [value(place), points(entry, place), {None: "", True: "yes", False: "no"}[verdict]]
            for place, verdict in ((entry.published, near), (entry.certified, high))
        )
        name = f"{entry.dataset} \\*" if entry.protocol == "paper" else entry.dataset
        rows.append([name, as_printed(entry.paper), *(cell for side in sides for cell in side)])
    if not rows:
        return []
    titles = ["dataset", "paper", "published", "Δ", "within ±", "certified", "Δ", "at or above"]
    return [
        f"The published procedure is within one standard deviation of the paper on {_count(published)}; the certified "
        f"equilibrium is at or above the paper on {_count(certified)}.",
        "",
        *table(titles, rows),
        "",
        "\\* the epoch is chosen on the mean test curve over the folds, as the paper does; epochs chosen on validation "
        "are below. Where a table of the paper has no deviation, it is that of another table with the same number.",
        "",
    ]


def _entries(items: Sequence[Item]) -> Iterator[Entry]:
    """The GIND row of the tables that compare systems; where there are two protocols, by that of the paper."""
    for item in items:
        for printed in item.tables:
            if printed.datasets and set(printed.rows) <= set(item.systems):
                own = [entry for entry in item.entries(printed) if entry.paper is not None]
                both = {entry.dataset for entry in own if entry.protocol == "paper"}
                yield from (entry for entry in own if entry.protocol == "paper" or entry.dataset not in both)


def _near(entry: Entry, items: Sequence[Item]) -> bool | None:
    """Of the published procedure; None where runs are missing or nothing says how far is near."""
    apart, deviation = entry.difference(entry.published), _deviation(entry, items)
    return None if apart is None or deviation is None else abs(round(apart, 2)) <= deviation


def _high(entry: Entry) -> bool | None:
    above = entry.difference(entry.certified)
    return None if above is None else round(above, 2) >= 0


def _deviation(entry: Entry, items: Sequence[Item]) -> float | None:
    """Of the paper's number; another table of the paper may have it."""
    assert entry.paper is not None
    others = (table.value(row, entry.dataset) for item in items for table in item.tables for row in table.rows)
    same = [entry.paper, *(other for other in others if other is not None and other.mean == entry.paper.mean)]
    return next((value.std for value in same if value.std is not None), None)


def _count(verdicts: Sequence[bool | None]) -> str:
    """5 of 12 datasets (of 1 more runs are missing)."""
    known = [verdict for verdict in verdicts if verdict is not None]
    gone = len(verdicts) - len(known)
    more = f" ({gone} more {are(gone)} not complete)" if gone else ""
    return f"{sum(known)} of {plural(len(known), 'dataset')}{more}"
