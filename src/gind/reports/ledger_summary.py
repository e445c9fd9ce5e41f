"""The ledger in one table: GIND on the datasets of the paper, by both profiles, and whether they hold what it says."""

from collections.abc import Iterator, Sequence

from gind.reports.ledger import Entry, Item, Place
from gind.reports.ledger_tables import as_printed, points, value
from gind.text import are, plural, table

__all__ = ["summary"]

_WORDS = {None: "", True: "yes", False: "no"}


def summary(items: Sequence[Item]) -> list[str]:
    """Is `published` within one standard deviation of the paper, and is `certified` at or above it?"""
    entries = list(_entries(items))
    if not entries:
        return []
    near, high = [_near(entry, items) for entry in entries], [_high(entry) for entry in entries]
    rows = [
        [
            f"{entry.dataset} \\*" if entry.protocol == "paper" else entry.dataset,
            as_printed(entry.paper),
            *(value(entry.published), points(entry, entry.published), _WORDS[is_near]),
            *(value(entry.certified), points(entry, entry.certified), _WORDS[is_high]),
        ]
        for entry, is_near, is_high in zip(entries, near, high, strict=True)
    ]
    published = _count(near, [entry.difference(entry.published) for entry in entries])
    certified = _count(high, [entry.difference(entry.certified) for entry in entries])
    level = [verdict for verdict in (_level(entry, items) for entry in entries) if verdict is not None]
    titles = ["dataset", "paper", "published", "Δ", "within ±", "certified", "Δ", "at or above"]
    return [
        f"The published procedure is within one standard deviation of the paper on {published}; the certified "
        f"equilibrium is at or above the paper on {certified}, and no more than one standard deviation below it on "
        f"{sum(level)} of {len(level)}.",
        "",
        *table(titles, rows),
        "",
        "\\* the epoch is chosen on the mean test curve over the folds, as the paper does; epochs chosen on validation "
        "are below. Where a table of the paper has no deviation, it is that of another table with the same number. "
        "What differs from the paper in other ways stands with each table.",
        "",
    ]


def _entries(items: Sequence[Item]) -> Iterator[Entry]:
    """The GIND row of the tables that compare systems; where there are two protocols, by that of the paper."""
    for item in items:
        for printed in item.tables:
            if printed.compares(item.systems):
                own = [entry for entry in item.entries(printed) if entry.paper is not None]
                both = {entry.dataset for entry in own if entry.protocol == "paper"}
                yield from (entry for entry in own if entry.protocol == "paper" or entry.dataset not in both)


def _near(entry: Entry, items: Sequence[Item]) -> bool | None:
    """Of the published procedure; None where runs are missing or nothing says how far is near."""
    apart, deviation = _difference(entry, entry.published), _deviation(entry, items)
    return None if apart is None or deviation is None else abs(apart) <= deviation


def _high(entry: Entry) -> bool | None:
    above = _difference(entry, entry.certified)
    return None if above is None else above >= 0


def _level(entry: Entry, items: Sequence[Item]) -> bool | None:
    """Whether the certified equilibrium is at or above, or at most a deviation below."""
    above, deviation = _difference(entry, entry.certified), _deviation(entry, items)
    if above is None or above >= 0:
        return _high(entry)
    return None if deviation is None else above >= -deviation


def _difference(entry: Entry, place: Place | None) -> float | None:
    """To the digits that the paper prints."""
    difference = entry.difference(place)
    assert entry.paper is not None
    digits = len(entry.paper.text.split(" ")[0].partition(".")[2])
    return None if difference is None else round(difference, digits)


def _deviation(entry: Entry, items: Sequence[Item]) -> float | None:
    """Of the paper's number; another table of the paper may have it."""
    assert entry.paper is not None
    others = (table.value(row, entry.dataset) for item in items for table in item.tables for row in table.rows)
    same = [entry.paper, *(other for other in others if other is not None and other.mean == entry.paper.mean)]
    return next((value.std for value in same if value.std is not None), None)


def _count(verdicts: Sequence[bool | None], differences: Sequence[float | None]) -> str:
    """5 of 12 datasets (2 more are not complete); where there is a difference and no verdict, it cannot be said."""
    known = [verdict for verdict in verdicts if verdict is not None]
    gone = sum(difference is None for difference in differences)
    more = f" ({gone} more {are(gone)} not complete)" if gone else ""
    return f"{sum(known)} of {plural(len(known), 'dataset')}{more}"
