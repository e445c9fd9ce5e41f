"""The ledger: for each item of the paper what it says, what the published procedure gives, what the certified
equilibrium gives.

    item → sheet → reports → Place (a system on a dataset) → Entry (a cell of the paper with its two places)
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gind.experiments.items import ITEMS, WITHOUT_RUNS, read_item, sheets
from gind.experiments.protocol import CHOICES, LAST
from gind.experiments.sheet import NESTED, Cell, Sheet
from gind.reports.collect import Collection, Row, collect
from gind.reports.paper import Paper, PaperTable, PaperValue
from gind.reports.remarks import Remarks, read_remarks

__all__ = ["CERTIFIED", "FLOOR", "PUBLISHED", "Entry", "Item", "Place", "open_item", "open_ledger"]

PUBLISHED, CERTIFIED = "gind-published", "gind"
FLOOR = "mlp"
"""the system that sees the features and no edges"""
_SECOND = "paper"


@dataclasses.dataclass(frozen=True)
class Place:
    """A system on a dataset: its runs, and those that are missing."""

    dataset: str
    model: str
    variant: str
    printed: str
    """row of the paper's table; empty if it has none"""
    row: Row | None
    expected: int
    missing: tuple[int, ...]
    """splits, of any seed"""
    protocol: str
    """what chooses the epoch, see `gind.experiments.protocol`"""

    @property
    def system(self) -> str:
        """The model, with its variant."""
        return f"{self.model}+{self.variant}" if self.variant else self.model

    @property
    def ours(self) -> bool:
        """Whether it is GIND, by either profile."""
        return self.model in (PUBLISHED, CERTIFIED)

    @property
    def lacking(self) -> str:
        """What there is of what a row needs, as 8/10; nothing if it is all there."""
        row = self.row
        if row is not None and row.splits < row.folds:  # however many the sheet asks for
            return f"{row.splits}/{row.folds} folds"
        return "" if row is None or row.runs == self.expected else f"{row.runs}/{self.expected}"

    @property
    def mean(self) -> float | None:
        """Of all its runs, in percent; None if some are missing."""
        return None if self.row is None or self.lacking else self.row.test.mean

    @property
    def number(self) -> float | None:
        """The value that varies along a curve; None for a variant that is no number."""
        try:
            return float(self.variant)
        except ValueError:
            return None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A cell of the paper, or one beside it that the paper does not have."""

    printed: str
    dataset: str
    protocol: str
    paper: PaperValue | None
    published: Place | None
    certified: Place | None

    def difference(self, place: Place | None) -> float | None:
        """Points above the paper; None without a number of both, or if runs are missing."""
        if self.paper is None or place is None or place.mean is None:
            return None
        return place.mean - self.paper.mean


@dataclasses.dataclass(frozen=True)
class Item:
    """A table or figure of the paper with what there is of it."""

    name: str
    label: str
    title: str
    collection: Collection | None
    """None: nothing has to be run for it"""
    tables: tuple[PaperTable, ...]
    places: tuple[Place, ...]
    remarks: Remarks
    systems: dict[str, str]
    """printed name → our model"""

    @property
    def total(self) -> int:
        """Runs that the sheet asks for."""
        return 0 if self.collection is None else len(self.collection.sheet.cells)

    @property
    def done(self) -> int:
        """Those that are there."""
        return 0 if self.collection is None else self.total - len(self.collection.missing)

    @property
    def ours(self) -> tuple[Place, ...]:
        """Those of GIND."""
        return tuple(place for place in self.places if place.ours)

    def only(self, cells: Sequence[Cell]) -> "Item":
        """The systems and datasets of these cells alone, with all the runs that the sheet asks for."""
        wanted = {(cell.dataset, name) for cell in cells for name in (cell.system, cell.chosen)}
        places = tuple(place for place in self.places if (place.dataset, place.system) in wanted)
        return dataclasses.replace(self, places=places)

    def entries(self, table: PaperTable) -> tuple[Entry, ...]:
        """The cells of GIND, in the order of the table; each dataset is followed by the one beside it.

        A cell that runs under several protocols is there as often, the honest one first.
        """
        ours = self.ours
        there = {place.printed for place in ours}
        rows = [row for row in table.rows if row in there]
        protocols = {(place.dataset, place.protocol) for place in ours}
        return tuple(
            Entry(
                printed,
                dataset,
                protocol,
                table.value(printed, dataset),
                _find(ours, model=PUBLISHED, printed=printed, dataset=dataset, protocol=protocol),
                _find(ours, model=CERTIFIED, printed=printed, dataset=dataset, protocol=protocol),
            )
            for dataset in _datasets(ours, table)
            for printed in rows
            for protocol in CHOICES
            if (dataset, protocol) in protocols
        )

    def floor(self, entry: Entry) -> Place | None:
        """What features alone give on the dataset of an entry, by the same protocol; None where nobody asks."""
        where = {"model": FLOOR, "dataset": entry.dataset, "protocol": entry.protocol}
        # a sheet has to name a second protocol of a model on a dataset, and names it after itself
        return _find(self.places, variant="", **where) or _find(self.places, variant=_SECOND, **where)

    def others(self, table: PaperTable) -> dict[str, dict[str, tuple[Place | None, PaperValue | None]]]:
        """The systems that are not GIND: by name and dataset, those of the paper's table first."""
        there = [place for place in self.places if not place.ours]
        printed = {self.systems[row]: row for row in table.rows if row in self.systems}
        order = [*printed, *(place.model for place in there)]
        there.sort(key=lambda place: order.index(place.model))
        return {
            _other(one): {
                dataset: (place, table.value(printed.get(one.model, ""), dataset) if place or not one.variant else None)
                for dataset in _datasets(there, table)
                for place in (_find(there, system=one.system, protocol=one.protocol, dataset=dataset),)
            }
            for one in {(place.system, place.protocol): place for place in there}.values()
        }


def open_ledger(results: Path, paper: Paper) -> tuple[Item, ...]:
    """All items, in the paper's order; those whose sheet is not there are left out."""
    return tuple(
        open_item(name, results, paper)
        for name in ITEMS
        if name in WITHOUT_RUNS or (sheets() / f"{name}.toml").exists()
    )


def open_item(name: str, results: Path, paper: Paper, sheet: Sheet | None = None) -> Item:
    """One item, with another sheet than its own if one is given; nothing is refused because it is missing."""
    tables = tuple(table for table in paper.tables if table.name == name or table.name.startswith(f"{name}-"))
    own, sheet = sheet is None, sheet or read_item(name)
    if sheet is None:
        title = tables[0].title if tables else "The two activation functions: σ(x) = x and σ(x) = tanh x"
        return Item(name, ITEMS[name], title, None, tables, (), Remarks(), {})
    collection = collect(sheet, results, empty=True)
    remarks = read_remarks(sheets() / f"{name}.toml", sheet) if own else Remarks()
    printed = {model: row for row, model in paper.systems.items()} | {PUBLISHED: "GIND"}
    expected = sheet.expected
    places = (
        _place(system, cells, collection, printed, expected[dataset, system])
        for (dataset, system), cells in collection.places.items()
        # a candidate that has a name of its own is no row, it is in that of the choice
        if not (cells[0].choose and cells[0].variant and system == cells[0].system)
    )
    both = tuple(reading for place in places for reading in (*_last(place), place))
    return Item(name, ITEMS[name], sheet.title, collection, tables, both, remarks, dict(paper.systems))


def _place(system: str, cells: Sequence[Cell], collection: Collection, printed: dict[str, str], expected: int) -> Place:
    first = cells[0]
    gone = [cell.split for cell in cells if cell in collection.missing]
    return Place(
        dataset=first.dataset,
        model=first.model,
        variant=system.partition("+")[2],
        printed=first.row or printed.get(first.model, ""),
        row=collection.row(first.dataset, system),
        expected=expected,
        missing=tuple(dict.fromkeys(sorted(gone))),
        protocol=NESTED if system == first.chosen else first.protocol,
    )


def _last(place: Place) -> tuple[Place, ...]:
    """The same runs at their last epoch, where test labels choose another."""
    if place.protocol != "paper":
        return ()
    row = None if place.row is None else place.row.last
    return (dataclasses.replace(place, row=row, protocol=LAST),)


def _other(place: Place) -> str:
    """What a system is called that is not GIND; a variant that is named as its protocol is said in words."""
    if place.protocol == "honest":
        return place.system
    named = NESTED if place.protocol == NESTED else _SECOND
    return f"{place.system.removesuffix(f'+{named}')}, {CHOICES[place.protocol]}"


def _datasets(places: Sequence[Place], table: PaperTable) -> list[str]:
    """In the order of the table, each followed by the one beside it; then those that it does not have."""
    order = [name for dataset in table.datasets for name in (dataset, table.beside.get(dataset, ""))]
    there = dict.fromkeys(place.dataset for place in places)
    return [*(name for name in order if name in there), *(name for name in there if name not in order)]


def _find(places: Sequence[Place], **wanted: str) -> Place | None:
    """The first place whose fields have these values."""
    return next((place for place in places if all(getattr(place, name) == wanted[name] for name in wanted)), None)
