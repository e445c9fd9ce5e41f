"""The ledger in one table: GIND on the datasets of the paper, by both profiles, and whether they hold what it says."""

import dataclasses
from collections.abc import Iterator, Sequence

from gind.reports.ledger import Entry, Item, Place
from gind.reports.ledger_tables import as_printed, points, value
from gind.text import are, plural, table

__all__ = ["summary"]

_WORDS = {None: "", True: "yes", False: "no"}


def summary(items: Sequence[Item]) -> list[str]:
    """Is `published` within one standard deviation of the paper, and is `certified` at or above it, by which layer?"""
    found = list(_entries(items, "paper"))
    if not found:
        return []
    entries, floors = [entry for entry, _ in found], [floor for _, floor in found]
    near, high = [_near(entry, entry.published, items) for entry in entries], [_high(entry) for entry in entries]
    layers = [_layer(entry.certified) for entry in entries]
    solved = {place.dataset: place for item in items for place in item.ours if place.printed == _SOLVED}
    rows = [
        [
            f"{entry.dataset} \\*" if entry.protocol == "paper" else entry.dataset,
            as_printed(entry.paper),
            *(value(entry.published), points(entry, entry.published), _WORDS[is_near]),
            *(value(entry.certified), points(entry, entry.certified), _WORDS[is_high], layer),
            *((value(solved.get(entry.dataset)), points(entry, solved.get(entry.dataset))) if solved else ()),
            _marked(floor, entry),
        ]
        for entry, floor, is_near, is_high, layer in zip(entries, floors, near, high, layers, strict=True)
    ]
    published = _count(near, [entry.difference(entry.published) for entry in entries])
    certified = _count(high, [entry.difference(entry.certified) for entry in entries])
    titles = ["dataset", "paper", "published", "Δ", "within ±", "certified", "Δ", "at or above", "its layer"]
    titles += [*([_SOLVED, "Δ"] if solved else []), "no graph"]
    return [
        f"The published procedure is within one standard deviation of the paper on {published}; the certified "
        f"equilibrium is at or above the paper on {certified}{_by_layer(layers, high)}."
        f"{_far_below(entries, items)}{_without_test_labels(items, entries)}",
        "",
        *table(titles, rows),
        "",
        *_FOOTNOTES,
        *([_SOLVED_NOTE] if solved else []),
        "",
    ]


_FOOTNOTES = (
    "- \\* the epoch is chosen on the mean test curve over the folds, as the published code does, also in the first "
    "counts; epochs chosen on validation are below. † Features alone (no graph) with the epoch chosen on validation.",
    "- The standard deviation is the paper's, over its splits or folds: how far parts of a dataset differ, which is "
    "more than another seed does to a mean. Where a table of the paper has none, it is that of another table with the "
    "same number.",
    "- Its layer: the paper's is one equilibrium Z = -Ĝᵀσ(Ĝ(Z + b)Kᵀ)K or its row variant, solved. With own ends each "
    "end of an edge has a matrix of its own, so that the energy sees directions "
    "([decision 0017](decisions/0017-own-ends.md)); several layers are equilibria in a row. Both keep every guarantee, "
    "but are not in the paper.",
    "- What differs from the paper in other ways stands with each table.",
)
_PAPERS = "the paper's"
_SOLVED = "solved"
_SOLVED_NOTE = """\
- Solved: the published settings, with one layer of the published kind brought to an equilibrium: its normalization is \
frozen, so that there is an energy, and on WebKB it has an injection of its own. No setting was chosen for it. The \
last section has its certificates, and the published procedure with the same seeds."""


def _layer(place: Place | None) -> str:
    """What the certified equilibrium is of; nothing without a run."""
    if place is None or place.row is None:
        return ""
    model = place.row.settings["model"]
    count = model.get("layers", 1)
    own = ["own ends"] if model.get("ends") == "own" else []
    return ", ".join([*own, *([f"{count} layers"] if count != 1 else [])]) or _PAPERS


def _by_layer(layers: Sequence[str], high: Sequence[bool | None]) -> str:
    """How many of these have the paper's layer, and how many another."""
    known = [(layer == _PAPERS, above) for layer, above in zip(layers, high, strict=True) if above is not None]
    if len({papers for papers, _ in known}) < 2:
        return ""
    counts = {kind: [above for papers, above in known if papers is kind] for kind in (True, False)}
    said = {True: "with the paper's layer", False: "with another"}
    return ": " + ", ".join(f"{sum(found)} of {len(found)} {said[kind]}" for kind, found in counts.items())


def _entries(items: Sequence[Item], protocol: str) -> Iterator[tuple[Entry, Place | None]]:
    """The GIND row of the tables that compare systems, with what features alone give; of several protocols by this."""
    for item in items:
        for printed in item.tables:
            if printed.compares(item.systems):
                own = [entry for entry in item.entries(printed) if entry.paper is not None]
                there = {entry.dataset for entry in own if entry.protocol == protocol}
                for entry in own:
                    if entry.protocol == (protocol if entry.dataset in there else "honest"):
                        yield entry, _floor(item, entry)


def _floor(item: Item, entry: Entry) -> Place | None:
    """By the same protocol; by validation, where runs of that are missing."""
    same = item.floor(entry)
    honest = item.floor(dataclasses.replace(entry, protocol="honest"))
    return honest if same is None or (same.mean is None and honest is not None) else same


def _marked(floor: Place | None, entry: Entry) -> str:
    other = floor is not None and floor.protocol != entry.protocol
    return f"{value(floor)} †" if other else value(floor)


def _without_test_labels(items: Sequence[Item], entries: Sequence[Entry]) -> str:
    """The same counts where test labels choose no epoch, if they do elsewhere."""
    honest = [entry for entry, _ in _entries(items, "honest")]
    near = [verdict for entry in honest if (verdict := _near(entry, entry.published, items)) is not None]
    high = [verdict for entry in honest if (verdict := _high(entry)) is not None]
    if all(entry.protocol == "honest" for entry in entries) or not (near or high):
        return ""
    return (
        " With all epochs chosen on validation, by no test label, the published procedure is within one standard "
        f"deviation on {sum(near)} of {len(near)}, and the certified equilibrium at or above on {sum(high)} of "
        f"{len(high)}."
    )


def _far_below(entries: Sequence[Entry], items: Sequence[Item]) -> str:
    """Where the certified equilibrium is below the paper by more than a standard deviation."""
    verdicts = {entry.dataset: (_near(entry, entry.certified, items), _high(entry)) for entry in entries}
    known = {dataset: near or high for dataset, (near, high) in verdicts.items() if near is not None}
    far = [dataset for dataset, fine in known.items() if not fine]
    where = f"{', '.join(far)}," if far else "none"
    return f" It is more than that deviation below on {where} of {plural(len(known), 'dataset')}." if known else ""


def _near(entry: Entry, place: Place | None, items: Sequence[Item]) -> bool | None:
    """Within one standard deviation; None where runs are missing or nothing says how far is near."""
    apart, deviation = _difference(entry, place), _deviation(entry, items)
    return None if apart is None or deviation is None else abs(apart) <= deviation


def _high(entry: Entry) -> bool | None:
    above = _difference(entry, entry.certified)
    return None if above is None else above >= 0


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
